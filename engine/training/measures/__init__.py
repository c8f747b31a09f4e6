"""What a finished model is measured by on data it never saw, and a sample of what it does, for its card.

One file for each way of learning, with the two functions `measured(trainer)` and `sample(trainer)`; both are called
with the model in evaluation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.training.measures import (
    classification,
    completion,
    exact,
    infill,
    masked,
    next_pixel,
    sequence_to_sequence,
    tagged,
    text,
)
from engine.training.trainer import Trainer


@dataclass(frozen=True)
class Measure:
    measured: Callable[[Trainer], dict[str, Any]]
    sample: Callable[[Trainer], str]


MEASURES = {
    "next": Measure(text.measured, text.sample),
    "repeated": Measure(text.measured, text.sample),
    "completion": Measure(completion.measured, exact.sample),
    "sequence_to_sequence": Measure(sequence_to_sequence.measured, exact.sample),
    "masked": Measure(masked.measured, masked.sample),
    "infill": Measure(infill.measured, infill.sample),
    "classification": Measure(classification.measured, classification.sample),
    "token_classification": Measure(tagged.measured, tagged.sample),
    "next_pixel": Measure(next_pixel.measured, next_pixel.sample),
}
