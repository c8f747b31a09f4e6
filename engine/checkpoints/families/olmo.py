"""OLMo (Groeneveld et al. 2024): Llama with layer norms that learn nothing."""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, HEADS, ROWS, SIZES, TIED, attention_bias_key
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key
from engine.checkpoints.tasks import with_tasks

KEYS = (
    *(key for key in SIZES if key.theirs != "rms_norm_eps"),
    HEADS,
    Key("head_dim", "attention.d_head", default=None),
    attention_bias_key(False),
)

DEFAULTS = {
    "vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "max_position_embeddings": 2048,
}  # fmt: skip

LANGUAGE = Family(
    name="olmo",
    architecture="OlmoForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "norm.kind": "layer", "norm.eps": 1e-5, "norm.learned": "none", "mlp.bias": False},
    only=CAUSAL | {"clip_qkv": None},
    rows=tuple(row for row in ROWS if "norm" not in row[0]),
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token=None, span=None)
