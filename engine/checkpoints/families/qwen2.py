"""Qwen2 and 2.5 (Yang et al. 2024): Llama with biases on queries, keys and values alone."""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, ROWS, SIZES, TIED
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import QWEN as WINDOWS

KEYS = (
    *SIZES,
    Key("num_attention_heads", "attention.heads"),
    Key("head_dim", "attention.d_head", default=None),
    *WINDOWS,
)

DEFAULTS = {
    "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
    "num_attention_heads": 32, "max_position_embeddings": 32768, "num_key_value_heads": 32,
}  # fmt: skip

LANGUAGE = Family(
    name="qwen2",
    architecture="Qwen2ForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "attention.bias": True, "attention.out_bias": False, "mlp.bias": False},
    only=CAUSAL,
    rows=ROWS,
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span_prefix="transformer.")
