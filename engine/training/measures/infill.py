"""How often each token of a gap is right with the right ones before it, and how often all of what is written is."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from engine.training.measures.decoding import continued
from engine.training.objectives.infill import prompt
from engine.training.sources.infill import GappedPassages
from engine.training.trainer import Trainer

GAPS, AT_ONCE = 1_000, 100
LONGEST = 48  # tokens of a span


def measured(trainer: Trainer) -> dict[str, Any]:
    shelf = passages(trainer).shelves["held_out"]
    gaps = [shelf.tokens.document(index) for index in shelf.fit[:GAPS].tolist()]
    parts = [gaps[begin : begin + AT_ONCE] for begin in range(0, len(gaps), AT_ONCE)]
    exact = sum(
        given == span.tolist()
        for part in parts
        for given, (_, span, _) in zip(filled(trainer, part), part, strict=True)
    )
    return {
        "token_accuracy": trainer.measure(max(GAPS // trainer.recipe.batch.size, 1))["accuracy"],
        "exact_spans": exact / len(gaps),
        "gaps": len(gaps),
        "decoding": "greedy",
    }


def filled(trainer: Trainer, gaps: list[tuple[Tensor, ...]]) -> list[list[int]]:
    source = passages(trainer)
    prompts = [prompt(before, after, source.marks).to(trainer.device) for before, _, after in gaps]
    return continued(trainer.model, prompts, source.marks.end, LONGEST)


def sample(trainer: Trainer) -> str:
    """A held-out passage with its gap, and what the model puts there."""
    source = passages(trainer)
    shelf = source.shelves["held_out"]
    gap = shelf.tokens.document(int(shelf.fit[0]))
    (span,) = filled(trainer, [gap])
    text = source.corpus.tokenizer.decode
    return f"{text(gap[0])}[{text(span)}]{text(gap[2])}"


def passages(trainer: Trainer) -> GappedPassages:
    assert isinstance(trainer.source, GappedPassages)
    return trainer.source
