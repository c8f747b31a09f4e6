"""How often a held-out picture or text is given its class."""

from __future__ import annotations

from typing import Any

from engine.training.measures import digits, labelled
from engine.training.sources.labelled import LabelledTexts
from engine.training.trainer import Trainer


def measure_classification(trainer: Trainer) -> dict[str, Any]:
    return labelled.measure_text_classes(trainer) if reads_text(trainer) else digits.measure_digit_classes(trainer)


def sample_classification(trainer: Trainer) -> str:
    return labelled.sample_text_class(trainer) if reads_text(trainer) else digits.sample_digit(trainer)


def reads_text(trainer: Trainer) -> bool:
    return isinstance(trainer.source, LabelledTexts)
