"""ImageGPT (Chen et al. 2020), as transformers names it: GPT-2's tables with RMSNorm.

The last token of its vocabulary begins a picture and is never predicted.
"""

from __future__ import annotations

from engine.checkpoints.families import gpt2
from engine.checkpoints.family import Family
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.checkpoints.tasks import body_of

SHARED = tuple(key for key in gpt2.KEYS if key.theirs not in ("activation_function", "tie_word_embeddings"))
KEYS = (*SHARED, Key("activation_function", "mlp.activation", default="quick_gelu", values=ACTIVATIONS))

ALWAYS = gpt2.ALWAYS | {"norm.kind": "rms", "tied": False, "head.outputs": lambda theirs: theirs["vocab_size"] - 1}

LANGUAGE = Family(
    name="imagegpt",
    architecture="ImageGPTForCausalImageModeling",
    keys=KEYS,
    always=ALWAYS,
    only=gpt2.ONLY | {"tie_word_embeddings": False},
    rows=tuple(row for row in gpt2.ROWS if ".ln_" not in row[0] or not row[0].endswith(".bias")),
    optional_prefix="transformer.",
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "ImageGPTModel"))
