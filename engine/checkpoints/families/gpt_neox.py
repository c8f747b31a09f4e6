"""GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023), as transformers names them.

Attention and MLP read the same stream, each through its own norm. Queries, keys and values are stored head by head.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import HEADS, attention_bias_key
from engine.checkpoints.family import DROPPED, Family, Transform
from engine.checkpoints.keys import ACTIVATIONS, Key, Table, write_only_key
from engine.checkpoints.kinds import FLAG
from engine.checkpoints.recomputed import CAUSAL_MASK, FREQUENCIES, MASK_VALUE
from engine.checkpoints.rotary import (
    CONTEXT_KEY,
    OLD_SCALING,
    SCALINGS,
    read_rope_table,
    read_scaling,
    read_theta,
    write_parameters,
)
from engine.checkpoints.tasks import with_tasks
from engine.model.config import ModelConfig


def partial_rotary_keys(
    name: str,
    default: float,
    theta: str = "rope_theta",
    scalings: Mapping[str, str] = SCALINGS,
    width: Callable[[Table], int] = lambda theirs: theirs["hidden_size"] // theirs["num_attention_heads"],
) -> tuple[Key, Key, Key]:
    """theta, scaling, and which part of a head's components turn: `name` is what older files call the last, and `theta`
    the first; `scalings` are the family's words for kinds of scaling, and `width` gives that of a head."""

    def read(theirs: Table) -> tuple[Any, dict[str, Any] | None, int]:
        part = read_rope_table(theirs).get("partial_rotary_factor", theirs.get(name, default))
        return read_theta(theirs, theta), read_scaling(theirs, scalings), int(width(theirs) * part)

    def part_of(ours: Table) -> float:
        part: float = ours["positions"]["turned"] / ours["attention"]["d_head"]
        return part

    return (
        Key(
            "rope_parameters",
            ("positions.theta", "positions.scaling", "positions.turned"),
            default=read,
            reads=lambda _, theirs: read(theirs),
            writes=lambda three, ours: {**write_parameters(*three[:2]), "partial_rotary_factor": part_of(ours)},
        ),
        write_only_key(name, part_of),
        write_only_key(theta, lambda ours: ours["positions"]["theta"]),
    )


KEYS = (
    Key("vocab_size", "vocab_size"),
    Key("hidden_size", "d_model"),
    Key("num_hidden_layers", "layers"),
    HEADS,
    CONTEXT_KEY,
    Key("intermediate_size", "mlp.d_mlp"),
    Key("hidden_act", "mlp.activation", default="gelu", values=ACTIVATIONS),
    Key("layer_norm_eps", "norm.eps", default=1e-5),
    Key("hidden_dropout", "dropout", default=0.0, also=("attention_dropout",)),
    Key("tie_word_embeddings", "tied", default=False),
    attention_bias_key(True),
    Key(
        "use_parallel_residual",
        "sublayers",
        default="parallel",
        reads=lambda parallel, _: "parallel" if parallel else "sequential",
        writes=lambda sublayers, _: sublayers == "parallel",
        kind=FLAG,
    ),
    *partial_rotary_keys("rotary_pct", 0.25, "rotary_emb_base"),
    OLD_SCALING,
)

ALWAYS = {
    "positions.kind": "rotary",
    "norm.kind": "layer",
    "norm.place": "before",
    "attention.mask": "causal",
}


def split_heads(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """(head q-k-v d_head) ... to three of (head d_head) ..."""
    by_head = tensors[0].unflatten(0, (config.attention.heads, 3, config.d_head))
    return [by_head[:, part].flatten(0, 1) for part in range(3)]


def join_heads(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    by_head = [tensor.unflatten(0, (config.attention.heads, config.d_head)) for tensor in tensors]
    return [torch.stack(by_head, dim=1).flatten(0, 2)]


HEAD_BY_HEAD = Transform(split_heads, join_heads)
LAYER = "gpt_neox.layers.{}."
ROWS = (
    ("gpt_neox.embed_in.weight", "embed.tokens.weight"),
    (f"{LAYER}input_layernorm.weight", "blocks.{}.norm1.weight"),
    (f"{LAYER}input_layernorm.bias", "blocks.{}.norm1.bias"),
    *(
        (f"{LAYER}attention.query_key_value.{part}", tuple(f"blocks.{{}}.attn.{x}.{part}" for x in "qkv"), HEAD_BY_HEAD)
        for part in ("weight", "bias")
    ),
    (f"{LAYER}attention.dense.weight", "blocks.{}.attn.out.weight"),
    (f"{LAYER}attention.dense.bias", "blocks.{}.attn.out.bias"),
    (f"{LAYER}attention.bias", DROPPED, CAUSAL_MASK),
    (f"{LAYER}attention.masked_bias", DROPPED, MASK_VALUE),
    (f"{LAYER}attention.rotary_emb.inv_freq", DROPPED, FREQUENCIES),
    (f"{LAYER}post_attention_layernorm.weight", "blocks.{}.norm2.weight"),
    (f"{LAYER}post_attention_layernorm.bias", "blocks.{}.norm2.bias"),
    (f"{LAYER}mlp.dense_h_to_4h.weight", "blocks.{}.mlp.pre.weight"),
    (f"{LAYER}mlp.dense_h_to_4h.bias", "blocks.{}.mlp.pre.bias"),
    (f"{LAYER}mlp.dense_4h_to_h.weight", "blocks.{}.mlp.out.weight"),
    (f"{LAYER}mlp.dense_4h_to_h.bias", "blocks.{}.mlp.out.bias"),
    ("gpt_neox.final_layer_norm.weight", "final_norm.weight"),
    ("gpt_neox.final_layer_norm.bias", "final_norm.bias"),
    ("embed_out.weight", "head.weight"),
)

DEFAULTS = {
    "vocab_size": 50432,
    "hidden_size": 6144,
    "num_hidden_layers": 44,
    "num_attention_heads": 64,
    "intermediate_size": 24576,
    "max_position_embeddings": 2048,
}

LANGUAGE = Family(
    name="gpt_neox",
    architecture="GPTNeoXForCausalLM",
    keys=KEYS,
    always=ALWAYS,
    only=CAUSAL,
    rows=ROWS,
    tied={"embed_out.weight": "gpt_neox.embed_in.weight"},
    optional_prefix="gpt_neox.",
    old_spelling={"lm_head.": "embed_out."},
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token="classifier")
