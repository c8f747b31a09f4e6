"""How often a held-out picture or text is given its class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.model.transformer import Transformer
from engine.training.measures import digits
from engine.training.sources.label_texts import LabelledTexts
from engine.training.trainer import Trainer


def measure_classification(trainer: Trainer) -> dict[str, Any]:
    return measure_text_classes(trainer) if reads_text(trainer) else digits.measure_digit_classes(trainer)


def sample_classification(trainer: Trainer) -> str:
    return sample_text_class(trainer) if reads_text(trainer) else digits.sample_digit(trainer)


def reads_text(trainer: Trainer) -> bool:
    return isinstance(trainer.source, LabelledTexts)


def measure_text_classes(trainer: Trainer) -> dict[str, Any]:
    """The accuracy on all held-out texts, and on those of each class."""
    source = text_source(trainer)
    asked = source.held_out_rows(len(source.shelves["held_out"].fit))
    found, wanted = classify(trainer.result, source, len(asked)).argmax(-1), torch.tensor([one.label for one in asked])
    right = (found == wanted).float()
    return {
        "test_accuracy": float(right.mean()),
        "texts": len(asked),
        "by_class": {
            name: float(right[wanted == label].mean())
            for label, name in enumerate(source.labels)
            if (wanted == label).any()
        },
    }


@torch.no_grad()
def classify(model: Transformer, source: LabelledTexts, most: int) -> Tensor:
    """Probabilities, row class, of `source.held_out_rows(most)`."""
    batches = source.held_out(-(-most // source.recipe.batch.size))
    found = [model(**each.to(model.device).inputs).softmax(-1).cpu() for each in batches]
    return torch.cat(found)[:most]


def macro_f1(wanted: Sequence[str], given: Sequence[str]) -> float:
    """The mean over the classes that were wanted of 2 hits / (wanted + given) (Manning et al. 2008, section 13.6)."""
    classes = sorted(set(wanted))
    hits = [sum(a == g == one for a, g in zip(wanted, given, strict=True)) for one in classes]
    counts = [wanted.count(one) + given.count(one) for one in classes]
    return sum(2 * hit / count for hit, count in zip(hits, counts, strict=True)) / len(classes)


def sample_text_class(trainer: Trainer) -> str:
    """The first held-out text, and what it is taken for."""
    source = text_source(trainer)
    (one,) = source.held_out_rows(1)
    label = source.labels[int(classify(trainer.result, source, 1).argmax())]
    return "\n".join(filter(None, [one.text, one.pair, label]))


def text_source(trainer: Trainer) -> LabelledTexts:
    assert isinstance(trainer.source, LabelledTexts)
    return trainer.source
