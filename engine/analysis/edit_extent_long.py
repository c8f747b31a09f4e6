"""What edits put into one head of a text too long for all its cells to be kept: seen as the run comes by it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from engine.analysis.edit_extent import STAGES, WITHIN, cells_of_edit
from engine.analysis.summarised_run import Enough
from engine.edits import Edit
from engine.model.hooks import HookPoint
from engine.model.transformer import Transformer
from engine.runtime.batch import Input
from engine.runtime.recording import Recording
from engine.runtime.run import run
from engine.runtime.trace import Trace


class Watching(Recording):
    """A recording that notes, stage by stage, which cells of one head its edits put there, and ends at the pattern."""

    def __init__(self, seen: dict[str, Tensor], name: str, head: int, model: Transformer, *given: Any) -> None:
        kept, *rest = given
        super().__init__(model, kept | {f"{name}pattern"}, *rest)
        self.seen, self.name, self.head = seen, name, head

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        after = super().visit(hook, value)
        stage = hook.name.removeprefix(self.name)
        if stage in STAGES and hook.name in self.edits:
            self.seen[stage] = self.put(hook, stage, value, after)
        if hook.name == f"{self.name}pattern":
            raise Enough
        return after

    def put(self, hook: HookPoint, stage: str, value: Tensor, after: Tensor) -> Tensor:
        """Bool pos key."""
        before, now = (one[self.head] if stage == "bias" else one[0, self.head] for one in (value, after))
        match stage:
            case "mask":
                return before != now
            case "masked_scores":
                return ~torch.isclose(now, before, rtol=WITHIN, atol=WITHIN)
            case "pattern":
                return (now - before).abs() > WITHIN
        every = torch.empty(1, dtype=torch.bool).expand(after.shape[-3:])
        return torch.stack([cells_of_edit(edit, hook.axes, every)[self.head] for edit in self.edits[hook.name]]).any(0)


def touched_head(
    model: Transformer,
    encoding: Input,
    hook: str,
    head: int,
    base: Trace,
    edits: Sequence[Edit],
    **options: Any,
) -> Tensor:
    """`touched_cells` of one head, u8 pos key, whose pattern is called `hook`; that layer is computed again.

    `base` is the edited run with its `streams` (engine/analysis/summarised_run.py), `edits` and `options` those it was
    made with. An edit is looked at where it acts, so no run without it is needed.
    """
    name = hook.removesuffix("pattern")
    seen: dict[str, Tensor] = {}
    try:
        run(model, encoding, (), edits, base, recorder=partial(Watching, seen, name, head), **options)
    except Enough:
        pass
    found: Tensor | None = None
    for stage, put in seen.items():  # in the order they are computed, so the earliest of several stays
        number = put.to(torch.uint8) * (STAGES.index(stage) + 1)
        found = number if found is None else torch.where(found > 0, found, number)
    if found is None:
        raise ValueError(f"no edit acts on the scores, mask or pattern of {hook}; ask for a head that one touches.")
    return found
