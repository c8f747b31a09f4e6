"""How often the answer to a held-out question is found, and how much of it (Rajpurkar et al. 2016, section 6.1)."""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch

from engine.data.task import Answered
from engine.training.measures.tagging import f1
from engine.training.objectives.classification import pair_inputs
from engine.training.sources.answers import Answers
from engine.training.trainer import Trainer

QUESTIONS = 1_000


def measure_span(trainer: Trainer) -> dict[str, Any]:
    """`exact` is the share of answers found as they are, `f1` the mean overlap of their words."""
    asked = held_out_questions(trainer, QUESTIONS)
    given = [predict_answer(trainer, one) for one in asked]
    overlaps = [overlap(one.answer, ours) for one, ours in zip(asked, given, strict=True)]
    exact = sum(one.answer.strip() == ours.strip() for one, ours in zip(asked, given, strict=True))
    return {"exact": exact / len(asked), "f1": sum(overlaps) / len(asked), "questions": len(asked)}


def overlap(wanted: str, given: str) -> float:
    """F1 of the words of two answers."""
    ours, theirs = Counter(given.lower().split()), Counter(wanted.lower().split())
    return f1((ours & theirs).total(), ours.total(), theirs.total())


@torch.no_grad()
def predict_answer(trainer: Trainer, one: Answered) -> str:
    """The likeliest span of the context: the likeliest start, and the likeliest end from there on."""
    source = source_of(trainer)
    row, segments = source.encode(one), trainer.result.config.embedding.segments > 1
    inputs = {name: each.to(trainer.device) for name, each in pair_inputs([row], source.fill, segments).items()}
    logits = trainer.result(**inputs)[0]
    places = [at for at, (start, stop) in enumerate(row.spans) if stop > start >= (row.second or 0)]
    first = max(places, key=lambda at: float(logits[at, 0]))
    last = max((at for at in places if at >= first), key=lambda at: float(logits[at, 1]))
    return row.text[row.spans[first][0] : row.spans[last][1]]


def held_out_questions(trainer: Trainer, most: int) -> list[Answered]:
    source = source_of(trainer)
    return [source.task_examples["held_out"][index] for index in source.shelves["held_out"].fit[:most].tolist()]


def sample_span(trainer: Trainer) -> str:
    """The first held-out question, and the answer that is found."""
    (one,) = held_out_questions(trainer, 1)
    return f"{one.question}\n{one.context}\n{predict_answer(trainer, one)}"


def source_of(trainer: Trainer) -> Answers:
    assert isinstance(trainer.source, Answers)
    return trainer.source
