"""Runs on long texts that are shared: every head as an overview, and whole the patterns that were looked at."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from torch import Tensor

from engine.analysis.summarised_run import Glance, glance, head_pattern
from engine.edits import Edit
from engine.model.transformer import Transformer
from engine.runtime import library
from engine.runtime.lru_cache import LruCache
from engine.tokenizers.encoding import Encoding

T = TypeVar("T")
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


class KeyedRun(Protocol):
    """Run of a model; its key names it, and no other of the same model."""

    @property
    def key(self) -> Hashable: ...

    @property
    def model(self) -> Transformer: ...


class OverviewCache:
    """Runs on long texts with every head as an overview, and whole patterns of the heads that were looked at."""

    def __init__(self, shelf: LruCache[Any]) -> None:
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
            self.cached(run, (hook, head), partial(getattr, found, "pattern"))
            small = sum(one.nbytes for one in found.overviews.values())
            found = self._shelf.keep(key, found, found.trace.bytes + small)
        return found

    def head(self, run: LongRun, hook: str, head: int, cells: int) -> Tensor:
        """The pattern of one head of the first text, pos key, from the run with `cells` a side."""
        base = self.overview(run, hook, head, cells).trace
        return self.cached(
            run, (hook, head), lambda: head_pattern(run.model, run.read, hook, head, base, run.edits, target=run.target)
        )

    def cached(self, run: KeyedRun, what: Hashable, make: Callable[[], T]) -> T:
        """Value that was made of a run once, in memory as patterns of long texts are.

        Stored with the model's hooks, as a trace has them: while these are held, no other model has their id.
        """
        kept: tuple[T] | None = self.find(run, what)
        if kept is None:
            made = make()
            kept = self._shelf.keep((run.key, what), (made, run.model.hooks), nbytes(made))
        return kept[0]

    def find(self, run: KeyedRun, what: Hashable) -> Any:
        """Such a value, the first of a tuple; None where it is not kept."""
        return self._shelf.find((run.key, what))


def nbytes(value: Any) -> int:
    """Bytes of the tensors in a value, its parts and fields."""
    if isinstance(value, Tensor):
        return value.nbytes
    fields = value if isinstance(value, Mapping) else getattr(value, "__dict__", {})
    return sum(map(nbytes, value if isinstance(value, tuple) else fields.values()))


def comparison_hooks(model: Transformer) -> tuple[str, ...]:
    """The hooks by which two runs are compared, beside their patterns."""
    ends = ("blocks.0.resid_pre", "resid_post")
    return tuple(hook for hook in model.hook_names if hook.endswith(ends) or hook == "logits")


glances = OverviewCache(library.traces.shelf)
