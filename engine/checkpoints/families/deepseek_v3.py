"""DeepSeek-V3 (DeepSeek-AI 2024), which R1 and Kimi K2 are as well: keys and values made of one compressed vector, and
experts by sigmoid scores, of the best groups alone, with a correction where they are chosen.

config.json's q and k have the turned part of a head last; Loupe has it first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from engine.checkpoints.experts import expert_rows, shared_rows, used_key
from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, ROWS, SIZES, TIED
from engine.checkpoints.family import Family, Transform, concatenate
from engine.checkpoints.keys import Key, Table, write_only_key
from engine.checkpoints.rotary import (
    CONTEXT_KEY,
    read_rope_table,
    read_whole_heads,
    write_parameters,
    yarn_attention_factor,
)
from engine.checkpoints.tasks import with_tasks
from engine.model.config import ModelConfig


def turn_first(tensor: Tensor, config: ModelConfig) -> Tensor:
    """Rows of queries, of each head the turned ones last ... first."""
    heads = tensor.unflatten(0, (config.attention.heads, -1))
    still = config.d_head - config.d_turned
    return concatenate([heads[:, still:], heads[:, :still]], dim=1).flatten(0, 1)


def turn_last(tensor: Tensor, config: ModelConfig) -> Tensor:
    heads = tensor.unflatten(0, (config.attention.heads, -1))
    return concatenate([heads[:, config.d_turned :], heads[:, : config.d_turned]], dim=1).flatten(0, 1)


def on_first(change: Callable[[Tensor, ModelConfig], Tensor]) -> Callable[[list[Tensor], ModelConfig], list[Tensor]]:
    """Change of the first of a row's tensors; the others stay as they are."""
    return lambda tensors, config: [change(tensors[0], config), *tensors[1:]]


QUERIES = Transform(on_first(turn_first), on_first(turn_last))


def split_keys(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Compressed keys and values, then the turned part ... each by itself."""
    return list(tensors[0].split((len(tensors[0]) - config.d_turned, config.d_turned)))


def stack(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [concatenate(tensors, dim=0)]


def part_heads(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Keys, then values of each head ... all keys, all values."""
    still, wide = config.d_head - config.d_turned, config.value_width(config.attention)
    keys, values = tensors[0].unflatten(0, (config.attention.heads, -1)).split((still, wide), dim=1)
    return [keys.flatten(0, 1), values.flatten(0, 1)]


def join_heads(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    heads = [tensor.unflatten(0, (config.attention.heads, -1)) for tensor in tensors]
    return [concatenate(heads, dim=1).flatten(0, 1)]


SPLIT, HEADS = Transform(split_keys, stack), Transform(part_heads, join_heads)
THEIRS, OURS = "model.layers.{}.self_attn", "blocks.{}.attn"
LATENT = (
    (
        (f"{THEIRS}.q_b_proj.weight", f"{THEIRS}.q_a_proj.weight", f"{THEIRS}.q_a_layernorm.weight"),
        (f"{OURS}.q.weight", f"{OURS}.latent.queries.weight", f"{OURS}.latent.queries_norm.weight"),
        QUERIES,
    ),
    (f"{THEIRS}.q_a_proj.bias", f"{OURS}.latent.queries.bias"),
    (f"{THEIRS}.q_proj.weight", f"{OURS}.q.weight", QUERIES),
    *(
        (f"{THEIRS}.kv_a_proj_with_mqa.{one}", tuple(f"{OURS}.latent.{to}.{one}" for to in ("keys", "shared")), SPLIT)
        for one in ("weight", "bias")
    ),
    (f"{THEIRS}.kv_a_layernorm.weight", f"{OURS}.latent.keys_norm.weight"),
    (f"{THEIRS}.kv_b_proj.weight", (f"{OURS}.k.weight", f"{OURS}.v.weight"), HEADS),
)  # fmt: skip
MODULE = "model.layers.{}.mlp"
OWN = ("q_proj", "k_proj", "v_proj", "inv_freq", "mlp.gate_proj.bias", "mlp.up_proj.bias", "mlp.down_proj.bias")
BODY = (
    *(row for row in ROWS if not any(part in row[0] for part in OWN)),
    *LATENT,
    *expert_rows(MODULE),
    *shared_rows(f"{MODULE}.shared_experts"),
)


def read_rotary(theirs: Table) -> tuple[Any, dict[str, Any] | None, float | None]:
    """theta, scaling, and what scores are multiplied by, which YaRN changes here too."""
    theta, scaling = read_whole_heads(theirs)
    all_dim = read_rope_table(theirs).get("mscale_all_dim")
    if scaling is None or not all_dim:
        return theta, scaling, None
    factor = yarn_attention_factor(scaling["factor"], all_dim)
    return theta, scaling, (theirs["qk_nope_head_dim"] + theirs["qk_rope_head_dim"]) ** -0.5 * factor * factor


def write_rotary(three: tuple[Any, Table | None, float], ours: Table) -> dict[str, Any]:
    theta, scaling, scale = three
    written = write_parameters(theta, scaling)
    more = (scale * ours["attention"]["d_head"] ** 0.5) ** 0.5 - 1
    if abs(more) < 1e-9:
        return written
    if scaling is None or scaling["kind"] != "yarn" or scaling["factor"] <= 1:
        raise ValueError("scores are scaled otherwise than by d_head only where YaRN does so.")
    own = yarn_attention_factor(scaling["factor"], 1.0) if scaling["attention"] is None else scaling["attention"]
    all_dim = round(more / (0.1 * math.log(scaling["factor"])), 10)  # as it was written, so that it comes out again
    return written | {"attention_factor": own, "mscale_all_dim": all_dim}


def write_old_scaling(ours: Table) -> dict[str, Any] | None:
    positions = ours["positions"]
    if positions["scaling"] is None:
        return None
    written = write_rotary((positions["theta"], positions["scaling"], ours["attention"]["scale"]), ours)
    return {name: value for name, value in written.items() if name != "rope_theta"}


def read_dense(first: Any, theirs: Table) -> list[int]:
    return list(range(min(first, theirs["num_hidden_layers"])))


def write_dense(dense: Any, ours: Table) -> int:
    if list(dense) != list(range(len(dense))):
        raise ValueError("layers without experts come before all others there.")
    return len(dense)


def read_widths(still: int, theirs: Table) -> tuple[int, int]:
    """Width of a head, and of its turned part. Raises ValueError where angles would be of another width."""
    turned = theirs["qk_rope_head_dim"]
    if (width := theirs.get("head_dim") or turned) != turned:
        raise ValueError(f"config.json's head_dim must be qk_rope_head_dim, {turned}, got {width!r:.80}.")
    return still + turned, turned


def latent_keys() -> tuple[Key, ...]:
    """Keys of attention by a compressed vector."""
    widths = ("attention.d_head", "positions.turned")
    return (
        Key("num_attention_heads", "attention.heads"),
        write_only_key("num_key_value_heads", lambda ours: ours["attention"]["heads"]),  # which has no say there
        Key("kv_lora_rank", "attention.latent.keys", default=512),
        Key("q_lora_rank", "attention.latent.queries", default=None),
        Key("v_head_dim", "attention.latent.d_value", default=128),
        Key(
            "qk_nope_head_dim",
            widths,
            default=lambda theirs: (128 + theirs["qk_rope_head_dim"], theirs["qk_rope_head_dim"]),
            reads=read_widths,
            writes=lambda both, _: both[0] - both[1],
        ),
        write_only_key("qk_rope_head_dim", lambda ours: ours["positions"]["turned"]),
        write_only_key("head_dim", lambda ours: ours["positions"]["turned"]),
        write_only_key("qk_head_dim", lambda ours: ours["attention"]["d_head"]),
        Key(
            "attention_bias",
            ("attention.latent.bias", "attention.out_bias"),
            default=(False, False),
            reads=lambda value, _: (value, value),
            writes=lambda values, _: values[0],
        ),
        CONTEXT_KEY,
        Key(
            "rope_parameters",
            ("positions.theta", "positions.scaling", "attention.scale"),
            default=read_rotary,
            reads=lambda _, theirs: read_rotary(theirs),
            writes=write_rotary,
        ),
        write_only_key("rope_theta", lambda ours: ours["positions"]["theta"]),
        write_only_key("rope_scaling", write_old_scaling),
    )


def routed_keys(used: int) -> tuple[Key, ...]:
    """Keys of experts with shared ones beside them, behind layers that have none."""
    return (
        Key("n_routed_experts", "mlp.experts.count"),
        used_key(used),
        Key("routed_scaling_factor", "mlp.experts.scale", default=1.0),
        Key("moe_intermediate_size", "mlp.d_mlp"),
        Key(
            "n_shared_experts",
            "mlp.experts.shared",
            default=None,
            reads=lambda count, theirs: count * theirs["moe_intermediate_size"] or None,
            writes=lambda width, ours: width and width // ours["mlp"]["d_mlp"],
        ),
        Key(
            "intermediate_size",
            "mlp.experts.d_dense",
            default=lambda theirs: theirs["moe_intermediate_size"],
            writes=lambda width, ours: width or ours["mlp"]["d_mlp"],
        ),
        Key("first_k_dense_replace", "mlp.experts.dense", default=(), reads=read_dense, writes=write_dense),
    )


COMMON = tuple(
    key for key in SIZES if not {key.theirs} & {"num_key_value_heads", "intermediate_size", "max_position_embeddings"}
    and "rope" not in key.theirs
)  # fmt: skip
FIXED: Mapping[str, Any] = {**ALWAYS, "attention.bias": False, "mlp.bias": False}

KEYS = (
    *COMMON,
    *latent_keys(),
    *routed_keys(8),
    Key("norm_topk_prob", "mlp.experts.renormalised", default=True),
    Key("n_group", "mlp.experts.groups", default=8),
    Key("topk_group", "mlp.experts.groups_used", default=4),
    Key(
        "rope_interleave",
        "positions.pairs",
        default="neighbours",
        reads=lambda yes, _: "neighbours" if yes else "halves",
        writes=lambda pairs, _: pairs == "neighbours",
    ),
)

DEFAULTS = {
    "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432, "moe_intermediate_size": 2048,
    "num_hidden_layers": 61, "num_attention_heads": 128, "num_key_value_heads": 128, "n_shared_experts": 1,
    "n_routed_experts": 256, "routed_scaling_factor": 2.5, "kv_lora_rank": 512, "q_lora_rank": 1536,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "qk_nope_head_dim": 128, "n_group": 8, "topk_group": 4,
    "num_experts_per_tok": 8, "first_k_dense_replace": 3, "max_position_embeddings": 4096,
}  # fmt: skip

LANGUAGE = Family(
    name="deepseek_v3",
    architecture="DeepseekV3ForCausalLM",
    keys=KEYS,
    always={
        **FIXED,
        "mlp.experts.scores": "sigmoid",
        "mlp.experts.correction": True,
        "mlp.experts.group_best": 2,
    },
    only=CAUSAL,
    rows=(*BODY, (f"{MODULE}.gate.e_score_correction_bias", "blocks.{}.mlp.router.correction")),
    tied=TIED,
    optional_prefix="model.",
    common={"num_local_experts": "n_routed_experts"},
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
