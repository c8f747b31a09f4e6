"""CodeGen (Nijkamp et al. 2022), as transformers names it: GPT-J with queries, values and keys in one tensor.

That lies in four parts, one for each of the machines that it was trained on, each of a quarter of the heads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from engine.checkpoints.families import gptj
from engine.checkpoints.family import Transform, concatenate
from engine.checkpoints.keys import Key, Table
from engine.checkpoints.tasks import body_of
from engine.model.config import ModelConfig

PARTS = 4


def divides_into_parts(heads: Any, theirs: Table) -> Any:
    if heads % PARTS:
        raise ValueError(f"config.json's n_head must be a multiple of {PARTS} in a codegen, got {heads}.")
    return heads


def split(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """(part q-v-k heads/part d_head) ... to three of (head d_head) ..."""
    by_part = tensors[0].unflatten(0, (PARTS, 3, -1))
    return [by_part[:, at].flatten(0, 1) for at in (0, 2, 1)]


def join(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    queries, keys, values = (tensor.unflatten(0, (PARTS, -1)) for tensor in tensors)
    return [concatenate([queries, values, keys], dim=1).flatten(0, 1)]


QKV = tuple(f"blocks.{{}}.attn.{x}.weight" for x in "qkv")
OF_GPTJ = ("q_proj", "k_proj", "v_proj")

KEYS = (
    Key("n_head", "attention.heads", reads=divides_into_parts),
    Key("n_positions", "context", also=("n_ctx",)),
    *(key for key in gptj.KEYS if key.theirs not in ("n_head", "n_positions")),
)

LANGUAGE = replace(
    gptj.LANGUAGE,
    name="codegen",
    architecture="CodeGenForCausalLM",
    keys=KEYS,
    rows=(
        *(row for row in gptj.ROWS if not any(part in row[0] for part in OF_GPTJ)),
        ("transformer.h.{}.attn.qkv_proj.weight", QKV, Transform(split, join)),
    ),
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "CodeGenModel"))
