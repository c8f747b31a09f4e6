"""How often the answer to a held-out question is found, and how much of it (Rajpurkar et al. 2016, section 6.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from engine.analysis.answers import best_answer, where_answers_stand, words
from engine.data.task import Answered
from engine.model.transformer import Transformer
from engine.training.examples.classification import pair_inputs
from engine.training.measures.tagging import f1
from engine.training.sources.answers import Answers
from engine.training.trainer import Trainer

QUESTIONS = 1_000


def measure_span(trainer: Trainer) -> dict[str, Any]:
    source = source_of(trainer)
    asked = source.held_out_rows(QUESTIONS)
    return score_answers(asked, [predict_answer(trainer.result, source, one) for one in asked])


def score_answers(asked: Sequence[Answered], given: Sequence[str]) -> dict[str, Any]:
    """`exact` is the share of answers found as they are, `f1` the mean overlap of their words."""
    overlaps = [overlap(one.answer, ours) for one, ours in zip(asked, given, strict=True)]
    exact = sum(is_exact(one.answer, ours) for one, ours in zip(asked, given, strict=True))
    return {"exact": exact / len(asked), "f1": sum(overlaps) / len(asked), "questions": len(asked)}


def is_exact(wanted: str, given: str) -> bool:
    return wanted.strip() == given.strip()


def overlap(wanted: str, given: str) -> float:
    """F1 of the words of two answers."""
    ours, theirs = Counter(given.lower().split()), Counter(wanted.lower().split())
    return f1((ours & theirs).total(), ours.total(), theirs.total())


@torch.no_grad()
def predict_answer(model: Transformer, source: Answers, one: Answered) -> str:
    """The best span of the context, as Walkthrough shows it."""
    row = source.encode(one)
    inputs = pair_inputs([row], source.fill, model.config.embedding.segments > 1)
    logits = model(**{name: each.to(model.device) for name, each in inputs.items()})[0].cpu()
    return words(row, best_answer(logits, where_answers_stand(row, one.question)))


def sample_span(trainer: Trainer) -> str:
    """The first held-out question, and the answer that is found."""
    source = source_of(trainer)
    (one,) = source.held_out_rows(1)
    return f"{one.question}\n{one.context}\n{predict_answer(trainer.result, source, one)}"


def source_of(trainer: Trainer) -> Answers:
    assert isinstance(trainer.source, Answers)
    return trainer.source
