"""Mistral (Jiang et al. 2023): Llama without biases, every layer seeing a window of the text."""

from __future__ import annotations

from typing import Any

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, ROWS, SIZES, TIED
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key, Table
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import SLIDING


def left_out(theirs: Table) -> Any:
    """Absent it is 4096, null it is none."""
    return theirs.get("sliding_window", 4096)


def in_all_layers(window: Any, theirs: Table) -> Any:
    """Raises ValueError for Ministral's layers with and without a window, which transformers, too, has under another
    model_type."""
    kinds = theirs.get("layer_types")
    if kinds is not None and any(kind != SLIDING for kind in kinds):
        raise ValueError(f"config.json's layer_types must be {SLIDING} throughout for a mistral, got {kinds!r:.80}.")
    return window


KEYS = (
    *SIZES,
    Key("num_attention_heads", "attention.heads"),
    Key("head_dim", "attention.d_head", default=None),
    Key("sliding_window", "attention.window", default=left_out, reads=in_all_layers),
)

DEFAULTS = {
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "max_position_embeddings": 131072,
}  # fmt: skip

LANGUAGE = Family(
    name="mistral",
    architecture="MistralForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "attention.bias": False, "attention.out_bias": False, "mlp.bias": False},
    only=CAUSAL,
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE)
