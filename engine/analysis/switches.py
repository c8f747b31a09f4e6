"""The switches that tell a transformer from its relatives: what each stands at, and the config with one of them thrown.

BERT, GPT, T5, Llama, GLM and ViT are one picture in which these differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from engine.analysis import config_switch as setting
from engine.model.config import HeadKind, MaskKind, ModelConfig, NormKind, NormPlace, PositionKind, Sublayers, kv_heads


@dataclass(frozen=True)
class Switch:
    """`options` of a config are what it can be set to, the present one among them.

    `set` may raise ValueError: what the config refuses.
    """

    name: str
    title: str
    help: str
    get: Callable[[ModelConfig], str]
    set: Callable[[ModelConfig, str], ModelConfig]
    options: Callable[[ModelConfig], Sequence[str]]


def thrown(config: ModelConfig, settings: dict[str, str]) -> ModelConfig:
    """The config with every switch as in `settings` (name -> option). Raises ValueError where no model is like that."""
    for switch in SWITCHES:
        wanted = settings.get(switch.name)
        if wanted is not None and wanted != switch.get(config):
            config = switch.set(config, wanted)
    return config


def differing_switches(one: ModelConfig, other: ModelConfig) -> list[str]:
    """The names of the switches that do not stand alike."""
    return [switch.name for switch in SWITCHES if switch.get(one) != switch.get(other)]


def option_label(option: str) -> str:
    """An option in words."""
    return {"parallel_one_norm": "parallel, 1 norm"}.get(option, option.replace("_", " "))


def fixed_options(*options: str) -> Callable[[ModelConfig], Sequence[str]]:
    return lambda config: options


MAY_BE_NONE = ("layers", "d_mlp")  # sizes that may be 0
REACH = 130  # sizes on either side of one that does not fit; heads are rarely wider than 128


def sizes(config: ModelConfig) -> dict[str, int]:
    """The numbers beside the switches: how deep, how wide, how many heads."""
    return {
        "layers": config.layers,
        "d_model": config.d_model,
        "heads": config.attention.heads,
        "d_mlp": config.mlp.d_mlp if config.mlp else 0,
    }


def with_sizes(config: ModelConfig, layers: int, d_model: int, heads: int, d_mlp: int) -> ModelConfig:
    """Changes the `sizes` of all stacks. Raises ValueError where they do not go together."""
    present = sizes(config)
    if layers != present["layers"]:
        encoder = None if config.encoder is None else replace(config.encoder, layers=layers)
        config = replace(config, layers=layers, encoder=encoder)
    if (d_model, heads) != (present["d_model"], present["heads"]):
        shared = None if kv_heads(config.attention) == config.attention.heads else config.attention.kv_heads
        made = replace(config.attention, heads=heads, kv_heads=shared)
        encoder = config.encoder
        if encoder is not None:
            encoder = replace(encoder, attention=replace(encoder.attention, heads=heads, kv_heads=shared))
        config = replace(config, d_model=d_model, attention=made, encoder=encoder)
    if config.mlp is not None and d_mlp != present["d_mlp"]:
        config = setting.mlp(config, replace(config.mlp, d_mlp=d_mlp))
    return config


def single_changes(
    config: ModelConfig, settings: Mapping[str, str], numbers: Mapping[str, int]
) -> dict[str, str | int]:
    """Changes of one switch or one size that alone make a model of `settings` and `numbers`, which do not fit, by name.

    Of a size the nearest within REACH, of a switch the first option. Empty where one change is not enough.
    """

    def fits(name: str, value: str | int) -> bool:
        chosen = {**settings, **({name: str(value)} if name in settings else {})}
        sized = {**numbers, **({name: int(value)} if name in numbers else {})}
        try:
            with_sizes(thrown(config, chosen), **sized)
        except ValueError:
            return False
        return True

    found: dict[str, str | int] = {}
    for name, present in numbers.items():
        least = 0 if name in MAY_BE_NONE else 1
        near = (value for far in range(1, REACH) for value in (present - far, present + far) if value >= least)
        value = next((value for value in near if fits(name, value)), None)
        if value is not None:
            found[name] = value
    for switch in SWITCHES:
        options = (one for one in switch.options(config) if one != settings.get(switch.name))
        option = next((one for one in options if fits(switch.name, one)), None)
        if option is not None:
            found[switch.name] = option
    return found


SWITCHES: tuple[Switch, ...] = (
    Switch(
        "stacks",
        "stacks",
        "One stack, or an encoder before a decoder (Vaswani et al. 2017).",
        setting.get_stacks,
        setting.set_stacks,
        fixed_options("one", "two"),
    ),
    Switch(
        "input",
        "reads",
        "Tokens, or a picture cut into patches (ViT).",
        setting.get_input,
        setting.set_input,
        fixed_options("tokens", "patches"),
    ),
    Switch(
        "mask",
        "mask",
        "Who may attend to whom: all to all (an encoder), only back (a decoder), all within a prefix (GLM).",
        lambda config: config.attention.mask,
        setting.set_mask,
        lambda config: get_args(MaskKind),
    ),
    Switch(
        "window",
        "window",
        "How many keys back a query sees, itself included.",
        setting.get_window,
        setting.set_window,
        setting.windows,
    ),
    Switch(
        "positions",
        "positions",
        "A vector added to the embedding, a rotation of queries and keys, or a bias added to the scores.",
        lambda config: config.positions.kind,
        setting.set_positions,
        lambda config: get_args(PositionKind),
    ),
    Switch(
        "segments",
        "segments",
        "Vectors that tell two texts apart (BERT).",
        lambda config: str(config.embedding.segments),
        setting.set_segments,
        lambda config: sorted({"0", "2", str(config.embedding.segments)}),
    ),
    Switch(
        "width",
        "token width",
        "Token vectors as wide as the stream, or narrower and mapped up to it (ALBERT, ELECTRA).",
        setting.get_width,
        setting.set_width,
        setting.widths,
    ),
    Switch(
        "sharing",
        "blocks",
        "How many different blocks there are: one for each layer, or fewer that are used again (ALBERT).",
        setting.get_sharing,
        setting.set_sharing,
        setting.sharings,
    ),
    Switch(
        "norm",
        "norm",
        "LayerNorm, RMSNorm, BatchNorm or none.",
        lambda config: config.norm.kind,
        setting.set_norm,
        lambda config: get_args(NormKind),
    ),
    Switch(
        "learned",
        "learned by norms",
        "A weight of each feature and, of a layer norm, a bias; the weight alone (MPT, Cohere); or nothing (OLMo 1).",
        setting.get_learned,
        setting.set_learned,
        setting.norm_parts_learned,
    ),
    Switch(
        "place",
        "norm place",
        "Before each sublayer, on the stream after it, on the sublayer's output, or before it and on its output.",
        lambda config: config.norm.place,
        setting.set_place,
        lambda config: get_args(NormPlace),
    ),
    Switch(
        "sublayers",
        "sublayers",
        "One after the other, or side by side, with two norms (NeoX) or one (GPT-J).",
        lambda config: config.sublayers,
        setting.set_sublayers,
        lambda config: get_args(Sublayers),
    ),
    Switch(
        "kv_heads",
        "K, V heads",
        "Heads of keys and values: fewer than heads is grouped-query attention, one is multi-query.",
        setting.get_kv_heads,
        setting.set_kv_heads,
        setting.divisors,
    ),
    Switch(
        "qk_norm",
        "q, k norm",
        "Queries and keys normalised: each head by itself (Qwen3), with weights of its own (each: Command R+), or all "
        "together (OLMo 2).",
        setting.get_qk_norm,
        setting.set_qk_norm,
        fixed_options("none", "head", "each", "all"),
    ),
    Switch(
        "mlp",
        "MLP",
        "Plain, gated (GLU), or none.",
        setting.get_mlp,
        setting.set_mlp,
        fixed_options("plain", "gated", "none"),
    ),
    Switch(
        "experts",
        "experts",
        "MLPs in place of one, and how many of them each token sees.",
        setting.get_experts,
        setting.set_experts,
        setting.experts,
    ),
    Switch(
        "activation",
        "activation",
        "What bends the MLP's inner layer.",
        setting.get_activation,
        setting.set_activation,
        setting.activations,
    ),
    Switch("biases", "biases", "Of attention and MLP.", setting.get_biases, setting.set_biases, setting.biases),
    Switch(
        "head",
        "head",
        "What is read from the last stream: the next token, a masked one, a class of the whole or of each token.",
        lambda config: config.head.kind,
        setting.set_head,
        lambda config: get_args(HeadKind),
    ),
    Switch(
        "pooler",
        "pooler",
        "A dense layer on the first position (BERT).",
        setting.get_pooler,
        setting.set_pooler,
        fixed_options("no", "yes"),
    ),
    Switch(
        "tied",
        "tied head",
        "The head reads with the table of tokens instead of a matrix of its own.",
        lambda config: "yes" if config.tied else "no",
        lambda config, wanted: replace(config, tied=wanted == "yes"),
        fixed_options("yes", "no"),
    ),
)
