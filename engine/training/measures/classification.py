"""How often a held-out picture or text is given its class."""

from __future__ import annotations

from typing import Any

import torch

from engine.training.measures import digits
from engine.training.sources.label_texts import LabelledTexts
from engine.training.trainer import Trainer


def measure_classification(trainer: Trainer) -> dict[str, Any]:
    return measure_text_classes(trainer) if reads_text(trainer) else digits.measure_digit_classes(trainer)


def sample_classification(trainer: Trainer) -> str:
    return sample_text_class(trainer) if reads_text(trainer) else digits.sample_digit(trainer)


def reads_text(trainer: Trainer) -> bool:
    return isinstance(trainer.source, LabelledTexts)


@torch.no_grad()
def measure_text_classes(trainer: Trainer) -> dict[str, Any]:
    """The accuracy on all held-out texts, and on those of each class."""
    source = text_source(trainer)
    batches = list(source.held_out(len(source.shelves["held_out"].fit)))
    right = [trainer.result(**each.to(trainer.device).inputs).argmax(-1).cpu() == each.targets for each in batches]
    found, asked = torch.cat(right), torch.cat([each.targets for each in batches])
    return {
        "test_accuracy": float(found.float().mean()),
        "texts": len(found),
        "by_class": {
            name: float(found[asked == label].float().mean())
            for label, name in enumerate(source.labels)
            if (asked == label).any()
        },
    }


@torch.no_grad()
def sample_text_class(trainer: Trainer) -> str:
    """The first held-out text, and what it is taken for."""
    source = text_source(trainer)
    examples = source.examples("held_out", [int(source.shelves["held_out"].fit[0])])
    logits = trainer.result(**examples.to(trainer.device).inputs)
    return f"{next(iter(source.task_examples('held_out'))).text}\n{source.labels[int(logits.argmax())]}"


def text_source(trainer: Trainer) -> LabelledTexts:
    assert isinstance(trainer.source, LabelledTexts)
    return trainer.source
