"""How often a held-out picture or text is given its class."""

from __future__ import annotations

from typing import Any

from engine.training.measures import digits, labelled
from engine.training.sources.labelled import LabelledTexts
from engine.training.trainer import Trainer


def measured(trainer: Trainer) -> dict[str, Any]:
    return labelled.measured(trainer) if reads_text(trainer) else digits.measured(trainer)


def sample(trainer: Trainer) -> str:
    return labelled.sample(trainer) if reads_text(trainer) else digits.sample(trainer)


def reads_text(trainer: Trainer) -> bool:
    return isinstance(trainer.source, LabelledTexts)
