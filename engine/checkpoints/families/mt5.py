"""mT5 (Xue et al. 2021), as transformers names it: T5 1.1 with a vocabulary of 101 languages, whose outputs are never
scaled.
"""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import t5
from engine.checkpoints.family import Family

GATED = ("gelu_tanh", True)  # what it is where config.json does not say
DEFAULTS = t5.DEFAULTS | {
    "vocab_size": 250112,
    "d_ff": 1024,
    "num_layers": 8,
    "num_heads": 6,
    "feed_forward_proj": "gated-gelu",
}


def mt5(family: Family) -> Family:
    keys = tuple(
        replace(key, default=GATED) if key.theirs == "feed_forward_proj" else key
        for key in family.keys
        if key.theirs != "scale_decoder_outputs"
    )
    return replace(
        family,
        name="mt5",
        architecture=(family.architecture or "").replace("T5", "MT5"),
        also=tuple(name.replace("T5", "MT5") for name in family.also),
        keys=keys,
        defaults=DEFAULTS,
    )


PLACE = 1  # behind T5, which says the same and is better known
FAMILIES = tuple(map(mt5, t5.FAMILIES))
