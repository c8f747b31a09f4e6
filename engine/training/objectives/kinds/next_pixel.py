"""The pixel after each one of a picture, line by line."""

from __future__ import annotations

from engine.data.kinds.digits import Digits
from engine.training.measures.next_pixel import measure_pixels, sample_picture
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.sources.digits import DigitPixels

OBJECTIVE = ObjectiveKind(
    "next_pixel", 10, {Digits: DigitPixels},
    measure=measure_pixels, sample=sample_picture, unit="nats a pixel", needs=CAUSAL | {"tied": False},
)  # fmt: skip
