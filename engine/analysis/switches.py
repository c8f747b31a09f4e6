"""The switches that tell a transformer from its relatives: what each stands at, and the config with one of them thrown.

BERT, GPT, T5, Llama, GLM and ViT are one picture in which these differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

from engine.config import (
    MLP,
    Activation,
    Encoder,
    Head,
    HeadKind,
    MaskKind,
    ModelConfig,
    NormKind,
    NormPlace,
    Patches,
    PositionKind,
    Sublayers,
    kv_heads,
)

WINDOWS = ("all", "128", "512", "1024", "4096")
PICTURE = Patches(image=224, size=16)  # ViT-B/16's, for a model of tokens that is to read pictures
TEXT = {"vocab_size": 30_522, "context": 512}  # BERT's, for a model of pictures that is to read tokens
AS_MANY = "as many"
AS_STREAM, NARROW = "d", "128"  # how wide token vectors are: like the stream, or as in ALBERT and ELECTRA
EACH = "as layers"
CLASSES = 1000  # of a head that had none


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


def differing(one: ModelConfig, other: ModelConfig) -> list[str]:
    """The names of the switches that do not stand alike."""
    return [switch.name for switch in SWITCHES if switch.get(one) != switch.get(other)]


def spoken(option: str) -> str:
    """An option in words."""
    return {"parallel_one_norm": "parallel, 1 norm"}.get(option, option.replace("_", " "))


def fixed(*options: str) -> Callable[[ModelConfig], Sequence[str]]:
    return lambda config: options


def attention(config: ModelConfig, **changes: Any) -> ModelConfig:
    """Changes of the attention of all stacks; mask and window are the last stack's alone."""
    changed = replace(config, attention=replace(config.attention, **changes))
    both = {key: value for key, value in changes.items() if key not in ("mask", "window", "windowed")}
    if config.encoder is None or not both:
        return changed
    encoder = replace(config.encoder, attention=replace(config.encoder.attention, **both))
    cross = None if config.cross is None else replace(config.cross, **both)
    return replace(changed, encoder=encoder, cross=cross)


def mlp(config: ModelConfig, made: MLP | None) -> ModelConfig:
    encoder = None if config.encoder is None else replace(config.encoder, mlp=made)
    return replace(config, mlp=made, encoder=encoder)


def set_mask(config: ModelConfig, kind: str) -> ModelConfig:
    """Without a prefix there are no spans to fill, and no second positions inside them."""
    if kind != "prefix" and config.infill is not None:
        config = replace(
            config,
            infill=None,
            positions=replace(config.positions, axes=1),
            attention=replace(config.attention, mask=kind),  # type: ignore[arg-type]
        )
    return attention(config, mask=kind)


def set_window(config: ModelConfig, width: str) -> ModelConfig:
    if width == "all":
        return attention(config, window=None, windowed=None)
    return attention(config, window=int(width))


def windows(config: ModelConfig) -> Sequence[str]:
    own = get_window(config)
    return WINDOWS if own in WINDOWS else (*WINDOWS, own)


def get_window(config: ModelConfig) -> str:
    return "all" if config.attention.window is None else str(config.attention.window)


def set_positions(config: ModelConfig, kind: str) -> ModelConfig:
    axes = config.positions.axes if kind in ("rotary", "learned") else 1
    return replace(config, positions=replace(config.positions, kind=kind, axes=axes, turned=None))  # type: ignore[arg-type]


def set_norm(config: ModelConfig, kind: str) -> ModelConfig:
    return replace(config, norm=replace(config.norm, kind=kind))  # type: ignore[arg-type]


def set_place(config: ModelConfig, place: str) -> ModelConfig:
    return replace(config, norm=replace(config.norm, place=place))  # type: ignore[arg-type]


def set_sublayers(config: ModelConfig, kind: str) -> ModelConfig:
    return replace(config, sublayers=kind)  # type: ignore[arg-type]


def get_mlp(config: ModelConfig) -> str:
    if config.mlp is None:
        return "none"
    return "gated" if config.mlp.gated else "plain"


def set_mlp(config: ModelConfig, kind: str) -> ModelConfig:
    if kind == "none":
        return mlp(config, None)
    present = config.mlp or MLP(4 * config.d_model)
    return mlp(config, replace(present, gated=kind == "gated"))


def get_activation(config: ModelConfig) -> str:
    return "none" if config.mlp is None else config.mlp.activation


def set_activation(config: ModelConfig, kind: str) -> ModelConfig:
    return config if config.mlp is None else mlp(config, replace(config.mlp, activation=kind))  # type: ignore[arg-type]


def activations(config: ModelConfig) -> Sequence[str]:
    return ("none",) if config.mlp is None else get_args(Activation)


def get_kv_heads(config: ModelConfig) -> str:
    shared = kv_heads(config.attention)
    return AS_MANY if shared == config.attention.heads else str(shared)


def set_kv_heads(config: ModelConfig, wanted: str) -> ModelConfig:
    return attention(config, kv_heads=None if wanted == AS_MANY else int(wanted))


def divisors(config: ModelConfig) -> Sequence[str]:
    """How many heads of keys and values the heads can share."""
    heads = config.attention.heads
    return [AS_MANY, *(str(number) for number in range(heads // 2, 0, -1) if heads % number == 0)]


def get_biases(config: ModelConfig) -> str:
    found = {config.attention.bias, config.attention.out_bias}
    found |= set() if config.mlp is None else {config.mlp.bias}
    return "some" if len(found) == 2 else "yes" if True in found else "no"


def set_biases(config: ModelConfig, wanted: str) -> ModelConfig:
    if wanted == "some":
        return config
    biased = wanted == "yes"
    changed = attention(config, bias=biased, out_bias=biased)
    return changed if changed.mlp is None else mlp(changed, replace(changed.mlp, bias=biased))


def biases(config: ModelConfig) -> Sequence[str]:
    return ("yes", "no", "some") if get_biases(config) == "some" else ("yes", "no")


def set_head(config: ModelConfig, kind: str) -> ModelConfig:
    classes = config.head.classes or (CLASSES if kind in ("sequence", "token") else 0)
    return replace(config, head=replace(config.head, kind=kind, classes=classes))  # type: ignore[arg-type]


def get_pooler(config: ModelConfig) -> str:
    return "yes" if config.head.pooler else "no"


def set_pooler(config: ModelConfig, wanted: str) -> ModelConfig:
    return replace(config, head=replace(config.head, pooler=wanted == "yes", next_sentence=False))


def get_stacks(config: ModelConfig) -> str:
    return "one" if config.encoder is None else "two"


def set_stacks(config: ModelConfig, wanted: str) -> ModelConfig:
    """A second stack is like the first, but sees both sides, and stands before it."""
    if wanted == "one":
        return replace(config, encoder=None, cross=None)
    seeing = replace(config.attention, mask="full", window=None, windowed=None)
    return replace(config, encoder=Encoder(config.layers, seeing, config.mlp))


def get_input(config: ModelConfig) -> str:
    return "tokens" if config.embedding.patches is None else "patches"


def set_input(config: ModelConfig, wanted: str) -> ModelConfig:
    if wanted == "patches":
        embedding = replace(config.embedding, patches=PICTURE)
        head = config.head if config.head.kind in ("sequence", "none") else Head("sequence", classes=CLASSES)
        return replace(config, embedding=embedding, head=head, context=PICTURE.count + 1, vocab_size=1)
    head = replace(config.head, kind="none") if config.head.kind == "sequence" else config.head
    return replace(config, embedding=replace(config.embedding, patches=None), head=head, **TEXT)  # type: ignore[arg-type]


def set_segments(config: ModelConfig, wanted: str) -> ModelConfig:
    return replace(config, embedding=replace(config.embedding, segments=int(wanted)))


def get_width(config: ModelConfig) -> str:
    return AS_STREAM if config.embedding.width is None else str(config.embedding.width)


def set_width(config: ModelConfig, wanted: str) -> ModelConfig:
    width = None if wanted == AS_STREAM else int(wanted)
    return replace(config, embedding=replace(config.embedding, width=width))


def widths(config: ModelConfig) -> Sequence[str]:
    return list(dict.fromkeys([AS_STREAM, NARROW, get_width(config)]))


def get_sharing(config: ModelConfig) -> str:
    return EACH if config.distinct in (None, config.layers) else str(config.distinct)


def set_sharing(config: ModelConfig, wanted: str) -> ModelConfig:
    return replace(config, distinct=None if wanted == EACH else int(wanted))


def sharings(config: ModelConfig) -> Sequence[str]:
    return list(dict.fromkeys([EACH, "1", get_sharing(config)]))


def get_qk_norm(config: ModelConfig) -> str:
    return config.attention.qk_norm or "none"


def set_qk_norm(config: ModelConfig, wanted: str) -> ModelConfig:
    return attention(config, qk_norm=None if wanted == "none" else wanted)


def sizes(config: ModelConfig) -> dict[str, int]:
    """The numbers beside the switches: how deep, how wide, how many heads."""
    return {
        "layers": config.layers,
        "d_model": config.d_model,
        "heads": config.attention.heads,
        "d_mlp": config.mlp.d_mlp if config.mlp else 0,
    }


def resized(config: ModelConfig, layers: int, d_model: int, heads: int, d_mlp: int) -> ModelConfig:
    """With other `sizes`, of all stacks. Raises ValueError where they do not go together."""
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
        config = mlp(config, replace(config.mlp, d_mlp=d_mlp))
    return config


SWITCHES: tuple[Switch, ...] = (
    Switch(
        "stacks",
        "stacks",
        "One stack, or an encoder before a decoder (Vaswani et al. 2017).",
        get_stacks,
        set_stacks,
        fixed("one", "two"),
    ),
    Switch(
        "input",
        "reads",
        "Tokens, or a picture cut into patches (ViT).",
        get_input,
        set_input,
        fixed("tokens", "patches"),
    ),
    Switch(
        "mask",
        "mask",
        "Who may attend to whom: all to all (an encoder), only back (a decoder), all within a prefix (GLM).",
        lambda config: config.attention.mask,
        set_mask,
        lambda config: get_args(MaskKind),
    ),
    Switch(
        "window",
        "window",
        "How many keys back a query sees, itself included.",
        get_window,
        set_window,
        windows,
    ),
    Switch(
        "positions",
        "positions",
        "A vector added to the embedding, a rotation of queries and keys, or a bias added to the scores.",
        lambda config: config.positions.kind,
        set_positions,
        lambda config: get_args(PositionKind),
    ),
    Switch(
        "segments",
        "segments",
        "Vectors that tell two texts apart (BERT).",
        lambda config: str(config.embedding.segments),
        set_segments,
        lambda config: sorted({"0", "2", str(config.embedding.segments)}),
    ),
    Switch(
        "width",
        "token width",
        "Token vectors as wide as the stream, or narrower and mapped up to it (ALBERT, ELECTRA).",
        get_width,
        set_width,
        widths,
    ),
    Switch(
        "sharing",
        "blocks",
        "How many different blocks there are: one for each layer, or fewer that are used again (ALBERT).",
        get_sharing,
        set_sharing,
        sharings,
    ),
    Switch(
        "norm",
        "norm",
        "LayerNorm, RMSNorm or none.",
        lambda config: config.norm.kind,
        set_norm,
        lambda config: get_args(NormKind),
    ),
    Switch(
        "place",
        "norm place",
        "Before each sublayer, on the stream after it, or on both sides of the sublayer.",
        lambda config: config.norm.place,
        set_place,
        lambda config: get_args(NormPlace),
    ),
    Switch(
        "sublayers",
        "sublayers",
        "One after the other, or side by side, with two norms (NeoX) or one (GPT-J).",
        lambda config: config.sublayers,
        set_sublayers,
        lambda config: get_args(Sublayers),
    ),
    Switch(
        "kv_heads",
        "K, V heads",
        "Heads of keys and values: fewer than heads is grouped-query attention, one is multi-query.",
        get_kv_heads,
        set_kv_heads,
        divisors,
    ),
    Switch(
        "qk_norm",
        "q, k norm",
        "Queries and keys normalised, each head by itself (Qwen3) or all together (OLMo 2).",
        get_qk_norm,
        set_qk_norm,
        fixed("none", "head", "all"),
    ),
    Switch("mlp", "MLP", "Plain, gated (GLU), or none.", get_mlp, set_mlp, fixed("plain", "gated", "none")),
    Switch(
        "activation",
        "activation",
        "What bends the MLP's inner layer.",
        get_activation,
        set_activation,
        activations,
    ),
    Switch("biases", "biases", "Of attention and MLP.", get_biases, set_biases, biases),
    Switch(
        "head",
        "head",
        "What is read from the last stream: the next token, a masked one, a class of the whole or of each token.",
        lambda config: config.head.kind,
        set_head,
        lambda config: get_args(HeadKind),
    ),
    Switch(
        "pooler",
        "pooler",
        "A dense layer on the first position (BERT).",
        get_pooler,
        set_pooler,
        fixed("no", "yes"),
    ),
    Switch(
        "tied",
        "tied head",
        "The head reads with the table of tokens instead of a matrix of its own.",
        lambda config: "yes" if config.tied else "no",
        lambda config, wanted: replace(config, tied=wanted == "yes"),
        fixed("yes", "no"),
    ),
)
