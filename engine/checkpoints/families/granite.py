"""Granite 3 (Granite Team, IBM 2024): Llama with a number that token vectors are multiplied by, one for scores, one for
what a sublayer adds, and one that logits are divided by."""

from __future__ import annotations

from dataclasses import replace

from engine.checkpoints.families import llama
from engine.checkpoints.keys import Key
from engine.checkpoints.kinds import POSITIVE
from engine.checkpoints.tasks import body_of


def invert(number: float) -> float:
    """1 / number, which twice is the number that somebody wrote."""
    return float(f"{1 / number:.15g}")


MULTIPLIERS = (
    Key("embedding_multiplier", "embedding.scale", default=1.0, kind=POSITIVE),
    Key("attention_multiplier", "attention.scale", default=1.0, kind=POSITIVE),
    Key("residual_multiplier", "residual_scale", default=1.0, kind=POSITIVE),
    Key(
        "logits_scaling",
        "head.scale",
        default=1.0,
        reads=lambda divisor, _: 1 / divisor,
        writes=lambda scale, _: invert(scale),
        kind=POSITIVE,
    ),
)

LANGUAGE = replace(
    llama.LANGUAGE,
    name="granite",
    architecture="GraniteForCausalLM",
    keys=(*llama.KEYS, *MULTIPLIERS),
    also=(),
)
FAMILIES = (LANGUAGE, body_of(LANGUAGE, "GraniteModel"))
PLACE = 1  # behind Llama, which says some of the same and is better known
