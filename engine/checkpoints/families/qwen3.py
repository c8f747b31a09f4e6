"""Qwen3 (Yang et al. 2025): Llama whose queries and keys are normed, each head by itself."""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, ROWS, SIZES, TIED, attention_bias_key
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key
from engine.checkpoints.tasks import with_tasks
from engine.checkpoints.windows import QWEN as WINDOWS

KEYS = (
    *SIZES,
    Key("num_attention_heads", "attention.heads"),
    Key("head_dim", "attention.d_head", default=128),
    attention_bias_key(False),
    *WINDOWS,
)

NORMS = (
    ("model.layers.{}.self_attn.q_norm.weight", "blocks.{}.attn.q_norm.weight"),
    ("model.layers.{}.self_attn.k_norm.weight", "blocks.{}.attn.k_norm.weight"),
)

DEFAULTS = {
    "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
    "num_attention_heads": 32, "max_position_embeddings": 32768, "num_key_value_heads": 32,
}  # fmt: skip

LANGUAGE = Family(
    name="qwen3",
    architecture="Qwen3ForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "attention.qk_norm": "head", "mlp.bias": False},
    only=CAUSAL,
    rows=(*ROWS, *NORMS),
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span_prefix="transformer.")
