"""Gemma (Mesnard et al. 2024): Llama with scaled embeddings and norms that multiply by 1 + weight."""

from __future__ import annotations

from engine.checkpoints.families.gemma2 import BIDIRECTIONAL, LESS_ONE, SCALED
from engine.checkpoints.families.gpt2 import CAUSAL
from engine.checkpoints.families.llama import HEADS, ROWS, SIZES, TIED, attention_bias_key
from engine.checkpoints.family import Family
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.checkpoints.tasks import with_tasks

TANH = ACTIVATIONS | {"gelu": "gelu_tanh"}  # what the first files say and do not mean
KEYS = (
    *(key for key in SIZES if key.theirs not in ("hidden_act", "tie_word_embeddings")),
    HEADS,
    attention_bias_key(False),
    Key("head_dim", "attention.d_head", default=256),
    Key("hidden_act", "mlp.activation", default="gelu_tanh", values=TANH, also=("hidden_activation",)),
    Key("tie_word_embeddings", "tied", default=True),
    BIDIRECTIONAL,
)

DEFAULTS = {
    "vocab_size": 256000, "hidden_size": 3072, "intermediate_size": 24576, "num_hidden_layers": 28,
    "num_attention_heads": 16, "max_position_embeddings": 8192, "num_key_value_heads": 16,
}  # fmt: skip

LANGUAGE = Family(
    name="gemma",
    architecture="GemmaForCausalLM",
    keys=KEYS,
    always=SCALED,
    only=CAUSAL,
    rows=tuple((*row, LESS_ONE) if "norm" in row[0] else row for row in ROWS),
    tied=TIED,
    optional_prefix="model.",
    defaults=DEFAULTS,
)
FAMILIES = with_tasks(LANGUAGE, span=None)
