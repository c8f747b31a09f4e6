"""How often each token of a gap is right with the right ones before it, and how often all of what is written is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from engine.training.measures.decoding import decode_continuations
from engine.training.objectives.infill import prompt
from engine.training.sources.gapped_windows import GappedWindows
from engine.training.sources.infill import GappedPassages
from engine.training.trainer import Trainer

GAPS, WINDOWS, AT_ONCE = 1_000, 200, 100
LONGEST = 48  # tokens that are written, where no span is longer


def measure_infill(trainer: Trainer) -> dict[str, Any]:
    source = gap_source(trainer)
    gaps = source.gaps(GAPS if isinstance(source, GappedPassages) else WINDOWS)
    parts = [gaps[begin : begin + AT_ONCE] for begin in range(0, len(gaps), AT_ONCE)]
    exact = sum(
        given == span.tolist()
        for part in parts
        for given, (_, span, _) in zip(fill_gaps(trainer, part), part, strict=True)
    )
    return {
        "token_accuracy": trainer.measure(max(GAPS // trainer.recipe.batch.size, 1))["accuracy"],
        "exact_spans": exact / len(gaps),
        "gaps": len(gaps),
        "decoding": "greedy",
    }


def fill_gaps(trainer: Trainer, gaps: Sequence[Sequence[Tensor]]) -> list[list[int]]:
    source = gap_source(trainer)
    prompts = [prompt(before, after, source.marks).to(trainer.device) for before, _, after in gaps]
    longest = max(LONGEST, *(len(span) + 1 for _, span, _ in gaps))
    return decode_continuations(trainer.result, prompts, source.marks.end, longest)


def sample_infill(trainer: Trainer) -> str:
    """A held-out passage or window with its gap, and what the model puts there."""
    source = gap_source(trainer)
    (gap,) = source.gaps(1)
    (span,) = fill_gaps(trainer, [gap])
    text = source.corpus.tokenizer.decode
    return f"{text(gap[0])}[{text(span)}]{text(gap[2])}"


def gap_source(trainer: Trainer) -> GappedPassages | GappedWindows:
    assert isinstance(trainer.source, GappedPassages | GappedWindows)
    return trainer.source
