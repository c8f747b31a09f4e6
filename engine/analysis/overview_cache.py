"""Runs on long texts that are shared: every head as an overview, and whole the patterns that were looked at."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from engine.analysis.edit_extent_long import touched_head
from engine.analysis.summarised_run import Glance, glance, head_pattern, mean_head, rerun_reduced
from engine.edits import Edit
from engine.model.transformer import Transformer
from engine.runtime import library
from engine.runtime.lru_cache import Shelf
from engine.tokenizers.encoding import Encoding

LAST = slice(-1, None)  # where a glance makes logits: at all positions they cost as much as several layers


@dataclass(frozen=True)
class LongRun:
    """Inputs of a run on a long text: the model of an open checkpoint, what it reads, and its edits."""

    model: Transformer
    read: Encoding | Tensor
    edits: tuple[Edit, ...] = ()
    target: Encoding | None = None

    @property
    def key(self) -> tuple[object, ...]:
        return library.run_key(self.model, self.read, self.edits, self.target)


class Glances:
    """Runs on long texts with every head as an overview, and whole patterns of the heads that were looked at."""

    def __init__(self, shelf: Shelf[Any]) -> None:
        self._shelf = shelf  # that of other runs, so that all of them share its budget

    def overview(self, run: LongRun, hook: str, head: int, cells: int, base: LongRun | None = None) -> Glance:
        """Runs once for all heads, `cells` a side each; the head that is on screen comes with it.

        Where `base`, the same with other edits, is kept, only what the edits change is computed again. Raises as
        `engine.analysis.summarised_run.glance` does.
        """
        key = (*run.key, "glance", cells)
        found: Glance | None = self._shelf.find(key)
        if found is None:
            read, edits, options = run.read, run.edits, {"target": run.target, "logits_at": LAST}
            before = None if base is None else self._shelf.find((*base.key, "glance", cells))
            found = glance(run.model, read, hook, head, cells, comparison_hooks(run.model), edits, before, **options)
            self._keep(run, hook, head, found.pattern)
            small = sum(one.nbytes for one in found.overviews.values())
            found = self._shelf.keep(key, found, found.trace.bytes + small)
        return found

    def head(self, run: LongRun, hook: str, head: int, cells: int) -> Tensor:
        """The pattern of one head of the first text, pos key, from the run with `cells` a side."""
        base = self.overview(run, hook, head, cells)
        kept: tuple[Tensor, object] | None = self._shelf.find((*run.key, hook, head))
        if kept is not None:
            return kept[0]
        found = head_pattern(run.model, run.read, hook, head, base.trace, run.edits, target=run.target)
        return self._keep(run, hook, head, found)

    def edited_cells(self, run: LongRun, hook: str, head: int, cells: int) -> Tensor:
        """Cells of such a head that edits put there, u8 pos key. Raises as `touched_head` does."""

        def make() -> tuple[Tensor]:
            base = self.overview(run, hook, head, cells).trace
            return (touched_head(run.model, run.read, hook, head, base, run.edits, target=run.target),)

        return self.cached(run, (hook, head, "edited"), make)[0]

    def mean(self, run: LongRun, hook: str, cells: int) -> Tensor:
        """The mean of all heads of one layer of the first text, pos key, from that run."""

        def make() -> tuple[Tensor]:
            base = self.overview(run, hook, 0, cells).trace
            found = rerun_reduced(run.model, run.read, {hook: mean_head}, base, run.edits, target=run.target)
            return (found[hook],)

        return self.cached(run, (hook, "mean"), make)[0]

    def cached(self, run: LongRun, what: Hashable, make: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        """Values once made of that run, in memory as its patterns are."""
        key = (*run.key, what)
        found: tuple[tuple[Tensor, ...], object] | None = self._shelf.find(key)
        if found is None:
            values = make()
            found = self._shelf.keep(key, (values, run.model.hooks), sum(one.nbytes for one in values))
        return found[0]

    def _keep(self, run: LongRun, hook: str, head: int, pattern: Tensor) -> Tensor:
        """Stores with the model's hooks, as a trace has them: while these are held, no other model has their id."""
        found: Tensor = self._shelf.keep((*run.key, hook, head), (pattern, run.model.hooks), pattern.nbytes)[0]
        return found


def comparison_hooks(model: Transformer) -> tuple[str, ...]:
    """The hooks by which two runs are compared, beside their patterns."""
    ends = ("blocks.0.resid_pre", "resid_post")
    return tuple(hook for hook in model.hook_names if hook.endswith(ends) or hook == "logits")


glances = Glances(library.traces.shelf)
