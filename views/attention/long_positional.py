"""The positional share of a long text's heads, which takes many runs: the view asks for one step after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from engine.analysis.positional_long import PositionalSteps
from engine.runtime import library
from views.core.payload import pack

if TYPE_CHECKING:
    from views.attention.long import Long

UNSCORED = "Not every head of this text has its positional share yet; choose that score again, and stay until it has."


def placed(long: Long, side: str, whole: bool = False) -> bytes:
    """Goes one step on: `done` of `steps`, after which `scored` layers have theirs; `positional` is layer head.

    `whole` goes no further: it is for those of all heads, and refused with a sentence until they are known.
    """
    made, shelf = long.made, library.traces.shelf
    known, running = (*made.key, "positional", side), (*made.key, "positional steps", side)
    found: tuple[Tensor, object] | None = shelf.find(known)
    if found is None and whole:
        raise ValueError(UNSCORED)
    if found is not None:
        return pack({"done": 1, "steps": 1, "scored": len(found[0])}, {"positional": found[0]})
    steps: PositionalSteps | None = shelf.find(running)
    if steps is None:
        steps = PositionalSteps(made.model, made.read, long.trace, made.target, side)
        steps = shelf.keep(running, steps, steps.bytes)
    steps.advance()
    if steps.done == steps.steps:
        shelf.keep(known, (steps.shares, made.model.hooks), steps.shares.nbytes)
        shelf.drop(running)
    told = {"done": steps.done, "steps": steps.steps, "scored": steps.scored}
    return pack(told, {"positional": steps.shares.clone()})
