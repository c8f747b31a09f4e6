"""What a model can be asked to predict: one file each makes the examples, and score.py says how wrong the answers were.

`OBJECTIVES` is what a recipe may name, with the data that it fits and what its model must have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from engine.config import ModelConfig
from engine.training.objectives.examples import UNASKED, Counts, Examples
from engine.training.objectives.score import Outputs, score, shares_of

PRESENT = object()  # an optional part, whatever it holds


@dataclass(frozen=True)
class ObjectiveKind:
    """`data` are the tables [data.*] that it can learn from, `unit` is what its loss is the mean of, and `needs` what
    its model's config must say, by dotted key.
    """

    data: tuple[str, ...]
    unit: str = "nats a token"
    needs: Mapping[str, Any] = field(default_factory=dict)


LANGUAGE = {"head.kind": "language", "encoder": None}

OBJECTIVES = {
    "next": ObjectiveKind(("stories", "text", "repeats"), needs=LANGUAGE | {"attention.mask": "causal"}),
    "repeated": ObjectiveKind(("repeats",), needs=LANGUAGE | {"attention.mask": "causal"}),
    "masked": ObjectiveKind(
        ("sentence_pairs",),
        "nats a masked token, and nats a pair of sentences",
        {"head.kind": "masked", "head.next_sentence": True, "attention.mask": "full", "embedding.segments": 2},
    ),
    "translation": ObjectiveKind(("translation",), needs={"head.kind": "language", "encoder": PRESENT}),
    "infill": ObjectiveKind(
        ("infill",), "nats a token of the gap", LANGUAGE | {"attention.mask": "prefix", "infill": PRESENT}
    ),
    "classification": ObjectiveKind(
        ("digits",), "nats a picture", {"head.kind": "sequence", "embedding.patches": PRESENT}
    ),
    "next_pixel": ObjectiveKind(("digits",), "nats a pixel", LANGUAGE | {"attention.mask": "causal", "tied": False}),
}


def check_model(kind: str, config: ModelConfig) -> None:
    """Raises ValueError for a model that cannot learn by this objective."""
    for key, wanted in OBJECTIVES[kind].needs.items():
        value: Any = config
        for part in key.split("."):
            value = getattr(value, part)
        if value is None if wanted is PRESENT else value != wanted:
            expected = "given" if wanted is PRESENT else "left out" if wanted is None else repr(wanted)
            raise ValueError(f'model.{key} must be {expected} for objective.kind "{kind}", got {value!r}.')


__all__ = [
    "OBJECTIVES",
    "UNASKED",
    "Counts",
    "Examples",
    "ObjectiveKind",
    "Outputs",
    "check_model",
    "score",
    "shares_of",
]
