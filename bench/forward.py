"""One forward pass: with everything kept, with only the logits, and edited from a base."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from bench.models import GPT2_SMALL, LITTLE, Shape, both
from bench.paired import Row, paired
from engine.edits import SilenceHeads
from engine.run import run


def rows() -> Iterator[Row]:
    yield traced(GPT2_SMALL, reach=1.0)
    yield traced(LITTLE, reach=0.7)
    yield logits_alone(GPT2_SMALL, reach=1.0)
    yield logits_alone(LITTLE)
    for shape in (GPT2_SMALL, LITTLE):
        yield edited(shape, reach=0.4)


def traced(shape: Shape, reach: float) -> Row:
    ours, theirs = both(shape, "eager")
    ids = shape.ids

    @torch.no_grad()
    def their_pass() -> object:
        return theirs(ids, output_attentions=True, output_hidden_states=True, use_cache=False)

    note = f"{len(run(ours.model, ids))} tensors kept, theirs {2 * shape.config.layers + 2}"
    return paired(f"traced forward, {shape.name}", lambda: run(ours.model, ids), their_pass, reach, note=note)


def logits_alone(shape: Shape, reach: float | None = None) -> Row:
    ours, theirs = both(shape, "sdpa")
    ids = shape.ids

    @torch.no_grad()
    def their_pass() -> object:
        return theirs(ids, use_cache=False)

    return paired(
        f"forward, only logits, {shape.name}", lambda: run(ours.model, ids, keep="logits"), their_pass, reach
    )


def edited(shape: Shape, reach: float) -> Row:
    """Loupe against itself: an edit at the start of the last quarter, from a base and from nothing."""
    ours, _ = both(shape)
    ids = shape.ids
    layer = shape.config.layers * 3 // 4
    edits = [SilenceHeads(layer, [0])]
    last = slice(-1, None)
    base = run(ours.model, ids, logits_at=last)
    return paired(
        f"edit in layer {layer} from a base, {shape.name}",
        lambda: run(ours.model, ids, edits=edits, base=base, logits_at=last),
        lambda: run(ours.model, ids, edits=edits, logits_at=last),
        reach,
        note="against the full traced run; logits of the next token",
    )
