"""OLMo 2 (OLMo et al. 2024): Llama whose norms stand on what each sublayer adds, and on all queries and all keys."""

from __future__ import annotations

from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import ALWAYS, HEADS, ROWS, SIZES, TIED, attention_bias_key
from engine.checkpoints.families.qwen3 import NORMS as OF_QUERIES
from engine.checkpoints.family import Family
from engine.checkpoints.keys import Key
from engine.checkpoints.tasks import with_tasks

KEYS = (
    *(key for key in SIZES if key.theirs != "rms_norm_eps"),
    Key("rms_norm_eps", "norm.eps", default=1e-5),
    HEADS,
    Key("head_dim", "attention.d_head", default=None),
    attention_bias_key(False),
)

NORMS = (
    ("model.layers.{}.post_attention_layernorm.weight", "blocks.{}.norm1_after.weight"),
    ("model.layers.{}.post_feedforward_layernorm.weight", "blocks.{}.norm2_after.weight"),
    ("model.norm.weight", "final_norm.weight"),
)

DEFAULTS = {
    "vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "max_position_embeddings": 2048,
}  # fmt: skip

LANGUAGE = Family(
    name="olmo2",
    architecture="Olmo2ForCausalLM",
    keys=KEYS,
    always={**ALWAYS, "norm.place": "output", "attention.qk_norm": "all", "mlp.bias": False},
    only=CAUSAL,
    rows=(*(row for row in ROWS if "norm" not in row[0]), *NORMS, *OF_QUERIES),
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, token=None, span=None)
