"""Mistral (Jiang et al. 2023): Llama without biases, every layer seeing a window of the text."""

from __future__ import annotations

from typing import Any

from engine.checkpoints.families.llama import ALWAYS, ROWS, SIZES, TIED
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key, Table


def left_out(theirs: Table) -> Any:
    """Absent it is 4096, null it is none."""
    return theirs.get("sliding_window", 4096)


KEYS = (
    *SIZES,
    Key("num_attention_heads", "attention.heads"),
    Key("head_dim", "attention.d_head", default=None),
    Key("sliding_window", "attention.window", default=left_out),
)

FAMILY = Family(
    name="mistral",
    architecture="MistralForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "attention.bias": False, "attention.out_bias": False, "mlp.bias": False},
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
)
