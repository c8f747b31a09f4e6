"""What a model can be asked to predict: one file each makes the examples; engine/scoring says how wrong answers are.

`OBJECTIVES` is what a recipe may name, with the data that it fits and what its model must have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from engine.model.config import ModelConfig
from engine.training.data_recipe import LABELLED, OWN, PAIRS, RUNNING, TAGGED

PRESENT = object()  # an optional part, whatever it holds


@dataclass(frozen=True)
class ObjectiveKind:
    """`data` are the tables [data.*] that it can learn from, `unit` is what its loss is the mean of, and `needs` what
    its model's config must say, by dotted key; `of_data` is the same for some of the tables alone. `never` has what a
    value must not be, and what stands for it in a model that is made to suit. With `two_axes` positions count a gap's
    and a span's places apart where a model is made to suit, if their kind can.
    """

    data: tuple[str, ...]
    unit: str = "nats a token"
    needs: Mapping[str, Any] = field(default_factory=dict)
    of_data: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    never: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    two_axes: bool = False


WHOLE = {"attention.mask": {"prefix": "full"}}  # without a gap nothing says where a prefix ends: all of it is one
ONE_AXIS = {"positions.axes": 1}
LANGUAGE = {"head.kind": "language", "encoder": None}
CAUSAL = LANGUAGE | {"attention.mask": "causal"} | ONE_AXIS
TWO_TEXTS = {"head.next_sentence": True, "embedding.segments": 2}

OBJECTIVES = {
    "next": ObjectiveKind((*RUNNING, "repeats", "in_context"), needs=CAUSAL),
    "repeated": ObjectiveKind(("repeats",), needs=CAUSAL),
    "completion": ObjectiveKind((*PAIRS, *OWN), "nats a token of the target", CAUSAL),
    "sequence_to_sequence": ObjectiveKind(
        (*PAIRS, *OWN),
        needs={"head.kind": "language", "encoder": PRESENT, "attention.mask": "causal"} | ONE_AXIS,
    ),
    "masked": ObjectiveKind(
        ("sentence_pairs", *RUNNING),
        "nats a masked token, and nats a pair of sentences where there are pairs",
        {"head.kind": "masked", "attention.mask": "full", "encoder": None} | ONE_AXIS,
        {"sentence_pairs": TWO_TEXTS, **{name: {"head.next_sentence": False} for name in RUNNING}},
    ),
    "infill": ObjectiveKind(
        ("infill", *RUNNING), "nats a token of the gap", LANGUAGE | {"attention.mask": "prefix", "infill": PRESENT},
        two_axes=True,
    ),
    "classification": ObjectiveKind(
        ("digits", *LABELLED, *OWN), "nats a picture or text", {"head.kind": "sequence", "encoder": None} | ONE_AXIS,
        never=WHOLE,
    ),
    "token_classification": ObjectiveKind(
        (*TAGGED, *OWN), "nats a word", {"head.kind": "token", "encoder": None} | ONE_AXIS, never=WHOLE
    ),
    "span": ObjectiveKind(
        OWN, "nats a start or end of an answer", {"head.kind": "span", "encoder": None} | ONE_AXIS, never=WHOLE
    ),
    "reward": ObjectiveKind(
        ("preferences",), "nats a pair", {"head.kind": "sequence", "head.classes": 1, "encoder": None} | ONE_AXIS,
        never=WHOLE,
    ),
    "dpo": ObjectiveKind(("preferences",), "nats a pair", CAUSAL),
    "ppo": ObjectiveKind(("preferences",), "the clipped objective, of which less is better", CAUSAL),
    "grpo": ObjectiveKind(("preferences",), "the clipped objective, of which less is better", CAUSAL),
    "next_pixel": ObjectiveKind(("digits",), "nats a pixel", CAUSAL | {"tied": False}),
}


def check_model(kind: str, config: ModelConfig, data: str = "") -> None:
    """Raises ValueError for a model that cannot learn by this objective, from the table `data` where one is given."""
    objective = OBJECTIVES[kind]
    for key, wanted in {**objective.needs, **objective.of_data.get(data, {})}.items():
        value = reduce(getattr, key.split("."), config)
        if value is None if wanted is PRESENT else value != wanted:
            expected = "given" if wanted is PRESENT else "left out" if wanted is None else repr(wanted)
            raise ValueError(f'model.{key} must be {expected} for objective.kind "{kind}", got {value!r}.')
    for key, instead in objective.never.items():
        value = reduce(getattr, key.split("."), config)
        if value in instead:
            raise ValueError(
                f'model.{key} must not be {value!r} for objective.kind "{kind}"; it stands for {instead[value]!r} '
                "there, so write that."
            )
