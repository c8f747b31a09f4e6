"""ImageGPT (Chen et al. 2020), as transformers names it: GPT-2's tables with RMSNorm.

The last token of its vocabulary begins a picture and is never predicted. A classifier reads the pixels without it, and
the mean of what it made of all of them.
"""

from __future__ import annotations

from engine.checkpoints.families import gpt2
from engine.checkpoints.family import Family
from engine.checkpoints.keys import ACTIVATIONS, Key
from engine.checkpoints.tasks import MEAN, NO_BIAS, body_of, classifier

SHARED = tuple(key for key in gpt2.KEYS if key.theirs not in ("activation_function", "tie_word_embeddings"))
KEYS = (*SHARED, Key("activation_function", "mlp.activation", default="quick_gelu", values=ACTIVATIONS))

ALWAYS = gpt2.ALWAYS | {"norm.kind": "rms", "tied": False, "head.outputs": lambda theirs: theirs["vocab_size"] - 1}

DEFAULTS = {"vocab_size": 513, "n_positions": 1024, "n_embd": 512, "n_layer": 24, "n_head": 8}

LANGUAGE = Family(
    name="imagegpt",
    architecture="ImageGPTForCausalImageModeling",
    keys=KEYS,
    always=ALWAYS,
    only=gpt2.ONLY | {"tie_word_embeddings": False},
    rows=tuple(row for row in gpt2.ROWS if ".ln_" not in row[0] or not row[0].endswith(".bias")),
    optional_prefix="transformer.",
    common=gpt2.COMMON,
    defaults=DEFAULTS,
)
BODY = body_of(LANGUAGE, "ImageGPTModel")
FAMILIES = (classifier(BODY, "ImageGPTForImageClassification", "score", MEAN | NO_BIAS), LANGUAGE, BODY)
