"""What GGUF calls the tensors of a model, and how they lie there, as llama.cpp writes them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.families.deepseek_v3 import LATENT
from engine.checkpoints.family import DROPPED, SAME, Transform, concatenate
from engine.model.config import ModelConfig
from engine.model.quantised.tensor import take_rows

BOTH = ("weight", "bias")
BLOCK = re.compile(r"blk\.(\d+)\.")
PARTS = {"q": "q", "k": "k", "v": "v", "o": "out"}
TIED = {"output.weight": "token_embd.weight"}
NORMS = {
    **dict.fromkeys(("gpt_oss", "glm4_moe"), ("attn_norm", "post_attention_norm")),
    **dict.fromkeys(("bert", "distilbert", "nomic_bert"), ("attn_output_norm", "layer_output_norm")),
}  # of families that call the norms of attention and MLP otherwise
LATENT_FAMILIES = frozenset(("deepseek_v2", "deepseek_v3"))
# Families whose queries and keys turn by halves of a head and stand in GGUF as neighbours, as llama.cpp turns them.
AS_NEIGHBOURS = frozenset(
    ("llama", "granite", "granitemoe", "granitemoeshared", "olmo", "smollm3", "mixtral", "mistral")
)


def split_heads(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Queries, keys and values, which stand one behind the other."""
    wide = (config.attention.heads, config.kv_heads, config.kv_heads)
    return list(tensors[0].split([heads * config.d_head for heads in wide]))


def halve(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return list(tensors[0].split(len(tensors[0]) // 2))


def join(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [concatenate(tensors, dim=0)]


def halves_order(count: int, size: int) -> Tensor:
    """Of `count` rows, heads of `size`, where each row of the halves stands among the neighbours."""
    return torch.arange(count).view(-1, size // 2, 2).transpose(1, 2).reshape(-1)


def to_halves(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [take_rows(one, halves_order(len(one), config.d_head)) for one in tensors]


def to_neighbours(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [take_rows(one, halves_order(len(one), config.d_head).argsort()) for one in tensors]


def one_row(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [tensors[0].view(1, -1)]


def one_axis(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    return [tensors[0].view(-1)]


def join_keys(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Keys head in out and values head out in ... as rows of all heads."""
    keys, values = tensors
    return [keys.mT.flatten(0, 1), values.flatten(0, 1)]


def part_keys(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    keys, values = (tensor.unflatten(0, (config.attention.heads, -1)) for tensor in tensors)
    return [keys.mT, values]


QKV, HALVES = Transform(split_heads, join), Transform(halve, join)
ROTARY, GATE = Transform(to_halves, to_neighbours), Transform(one_row, one_axis)


KEYS = Transform(join_keys, part_keys)
OF_LATENT = {
    "model.layers.{}.self_attn.": "blk.{}.attn_", "kv_a_proj_with_mqa": "kv_a_mqa", "_a_layernorm": "_a_norm",
    "_proj": "",
}  # fmt: skip


def name_latent(name: str) -> str:
    """Name of a tensor of attention by a compressed vector."""
    for theirs, ours in OF_LATENT.items():
        name = name.replace(theirs, ours)
    return name


def latent_rows() -> Iterator[tuple[Any, ...]]:
    """Rows of attention by a compressed vector, whose keys and values newer files part and turn."""
    made = ("blocks.{}.attn.k.weight", "blocks.{}.attn.v.weight")
    yield ("blk.{}.attn_k_b.weight", "blk.{}.attn_v_b.weight"), made, KEYS
    rows: tuple[tuple[Any, ...], ...] = LATENT
    for source, *rest in rows:
        yield name_latent(source) if isinstance(source, str) else tuple(map(name_latent, source)), *rest


def gguf_rows(family: str, config: ModelConfig, stored: Collection[str]) -> tuple[tuple[Any, ...], ...]:
    """The rows of a family's model, in a file of these names: of several that make one tensor those that it has stand
    first."""
    known = {re.sub(r"\.\d+\.", ".{}.", name, count=1) for name in stored}
    rows = list(iterate_t5_rows(config, known) if family == "t5" else iterate_rows(family, config, known))
    if family == "glm4_moe":  # of which a layer behind the others guesses ahead
        numbered = ((name, BLOCK.match(name)) for name in stored)
        rows += [(name, DROPPED) for name, found in numbered if found and int(found[1]) >= config.layers]
    return tuple(sorted(rows, key=lambda row: not known.issuperset((row[0],) if isinstance(row[0], str) else row[0])))


def iterate_rows(family: str, config: ModelConfig, known: Collection[str]) -> Iterator[tuple[Any, ...]]:
    block, ours = "blk.{}", "blocks.{}"
    turned = ROTARY if family in AS_NEIGHBOURS else SAME
    norm1, norm2 = NORMS.get(family, ("attn_norm", "ffn_norm"))
    if family in LATENT_FAMILIES:
        yield from latent_rows()
    double = f"{block}.attn_norm_2.weight" in known  # Falcon's, whose second is that of attention
    gated = config.mlp is not None and config.mlp.gated
    split = f"{block}.ffn_gate.weight" in known
    names: Mapping[str, tuple[str, Transform]] = {
        "token_embd": ("embed.tokens", SAME),
        "position_embd": ("embed.positions", SAME),
        "token_embd_norm": ("embed.norm", SAME),
        "token_types": ("embed.segments", SAME),
        f"{block}.{norm1}": (f"{ours}.norm{2 if double else 1}", SAME),
        f"{block}.attn_norm_2": (f"{ours}.norm1", SAME),
        f"{block}.attn_q": (f"{ours}.attn.q", turned),
        f"{block}.attn_k": (f"{ours}.attn.k", turned),
        f"{block}.attn_v": (f"{ours}.attn.v", SAME),
        f"{block}.attn_q_norm": (f"{ours}.attn.q_norm", SAME),
        f"{block}.attn_k_norm": (f"{ours}.attn.k_norm", SAME),
        f"{block}.attn_output": (f"{ours}.attn.out", SAME),
        f"{block}.post_attention_norm": (f"{ours}.norm1_after", SAME),
        f"{block}.{norm2}": (f"{ours}.norm2", SAME),
        f"{block}.post_ffw_norm": (f"{ours}.norm2_after", SAME),
        **({f"{block}.ffn_gate": (f"{ours}.mlp.pre", SAME)} if split else {}),
        f"{block}.ffn_up": (f"{ours}.mlp.{'up' if gated and split else 'pre'}", SAME),
        f"{block}.ffn_down": (f"{ours}.mlp.out", SAME),
        f"{block}.ffn_gate_inp": (f"{ours}.mlp.router", SAME),
        f"{block}.ffn_gate_exps": (f"{ours}.mlp.experts.pre", SAME),
        f"{block}.ffn_up_exps": (f"{ours}.mlp.experts.up", SAME),
        f"{block}.ffn_down_exps": (f"{ours}.mlp.experts.out", SAME),
        f"{block}.ffn_gate_shexp": (f"{ours}.mlp.shared.pre", SAME),
        f"{block}.ffn_up_shexp": (f"{ours}.mlp.shared.up", SAME),
        f"{block}.ffn_down_shexp": (f"{ours}.mlp.shared.out", SAME),
        f"{block}.ffn_gate_inp_shexp": (f"{ours}.mlp.shared_gate", GATE),
        "output_norm": ("final_norm", SAME),
        "output": ("head", SAME),
    }
    for part in BOTH:
        if gated and not split:
            made = tuple(f"{ours}.mlp.{one}.{part}" for one in ("pre", "up"))
            yield f"{block}.ffn_up.{part}", made, HALVES
        yield f"{block}.attn_qkv.{part}", tuple(f"{ours}.attn.{one}.{part}" for one in "qkv"), QKV
        for theirs, (own, transform) in names.items():
            yield f"{theirs}.{part}", f"{own}.{part}", transform
    yield f"{block}.attn_sinks.weight", f"{ours}.attn.sinks"
    yield f"{block}.exp_probs_b.bias", f"{ours}.mlp.router.correction"
    for table in ("rope_freqs", "rope_factors_long", "rope_factors_short"):  # read as part of the settings
        yield f"{table}.weight", DROPPED
        yield f"{block}.{table}.weight", DROPPED


def iterate_t5_rows(config: ModelConfig, known: Collection[str]) -> Iterator[tuple[Any, ...]]:
    """Rows of an encoder and a decoder, or of an encoder by itself."""
    stacks = {"enc": ""} if config.encoder is None else {"enc": "encoder.", "dec": "decoder."}
    split = "enc.blk.{}.ffn_gate.weight" in known
    names = {
        "attn_norm": "norm1", "cross_attn_norm": "norm_cross", "ffn_norm": "norm2", "ffn_down": "mlp.out",
        **({"ffn_gate": "mlp.pre", "ffn_up": "mlp.up"} if split else {"ffn_up": "mlp.pre"}),
        **{f"attn_{theirs}": f"attn.{ours}" for theirs, ours in PARTS.items()},
        **{f"cross_attn_{theirs}": f"cross_attn.{ours}" for theirs, ours in PARTS.items()},
    }  # fmt: skip
    for theirs, ours in stacks.items():
        yield f"{theirs}.blk.0.attn_rel_b.weight", f"{ours}relative.weight"
        yield f"{theirs}.output_norm.weight", f"{ours}final_norm.weight"
        for name, own in names.items():
            yield f"{theirs}.blk.{{}}.{name}.weight", f"{ours}blocks.{{}}.{own}.weight"
    yield "token_embd.weight", f"{stacks['enc']}embed.tokens.weight"
    yield "dec.blk.0.cross_attn_rel_b.weight", DROPPED  # never used
    yield "output.weight", "head.weight"
