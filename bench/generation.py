"""Generation with the KV cache: greedy, at two sizes, and beams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from bench.models import GPT2_SMALL, LITTLE, Shape, both
from bench.paired import Row, paired
from engine.generation.beam import beam
from engine.generation.generate import generate

NEW = 200  # tokens of the little model, greedy
FEW = 64  # of the others
BEAMS = 4


def rows() -> Iterator[Row]:
    yield compared(LITTLE, NEW, 1, 0.6)
    yield compared(GPT2_SMALL, FEW, 1, 0.95)
    yield compared(LITTLE, FEW, BEAMS, 0.8)


def compared(shape: Shape, count: int, beams: int, reach: float) -> Row:
    """Raises ValueError where the two sides write other tokens: the times would mean nothing."""
    ours, theirs = both(shape, "sdpa")
    one, other = ours_of(ours, shape, count, beams), theirs_of(theirs, shape, count, beams)
    if one() != other():
        raise ValueError("both sides must write the same tokens, and do not: the times would mean nothing.")
    how = "greedy" if beams == 1 else f"in {beams} beams"
    return paired(f"{count} tokens {how}, {shape.name}", one, other, reach)


def ours_of(checkpoint: Any, shape: Shape, count: int, beams: int) -> Callable[[], list[int]]:
    def greedy() -> list[int]:
        return [step.id for step in generate(checkpoint, shape.ids, count, greedy=True, stop_at_end=False)]

    def search() -> list[int]:
        return list(beam(checkpoint, shape.ids, beams, count, stop_at_end=False).hypotheses[0].ids)

    return greedy if beams == 1 else search


def theirs_of(model: Any, shape: Shape, count: int, beams: int) -> Callable[[], list[int]]:
    ids = shape.ids
    settings = {"max_new_tokens": count, "do_sample": False, "use_cache": True, "pad_token_id": 0, "num_beams": beams}

    def written() -> list[int]:
        found: Tensor = model.generate(ids, attention_mask=torch.ones_like(ids), eos_token_id=None, **settings)
        return [int(id) for id in found[0, ids.shape[1] :]]

    return written
