"""The edit that lets a run see a low-rank adapter, and where the adapters are that such edits name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import Tensor

from engine.budget import budget
from engine.edits.edit import ALL_REAL, Edit, Reach, RealTokens
from engine.edits.sources import FetchingEdit, SourceRuns
from engine.model.hooks import HookPoint
from engine.model.layers.lora import Adapter, LowRank, check_fits
from engine.runtime.lru_cache import LruCache

STRONGEST = 2.0
_adapters: LruCache[Adapter] = LruCache(lambda: budget.adapters_memory)


def keep_adapter(adapter: Adapter) -> str:
    """The key by which edits name the adapter, which is found by it from now on."""
    if any(tensor.requires_grad for tensor in adapter.tensors):
        adapter = adapter.copy()
    _adapters.keep(adapter.key, adapter, adapter.bytes)
    return adapter.key


def find_adapter(key: str) -> Adapter:
    """Raises ValueError for one that was not opened here, or has had to make room since."""
    found = _adapters.find(key)
    if found is None:
        raise ValueError(f"the adapter {key!r:.80} is not here; open its folder again.")
    return found


def digest_of(key: str) -> str:
    """Digest of what an adapter does, without its name."""
    return key.rpartition("~")[2]


@dataclass(frozen=True)
class ApplyAdapter(FetchingEdit):
    """Add an adapter to the linear maps it was made for (Hu et al. 2022, section 4.1), with a `strength` from 0 to 2.

    `adapter` is its key, as `keep_adapter` gives it. Several add up. Of an adapter that the model's weights hold
    already, as where its folder was opened, `strength` is what it has then in place of 1: 0 switches it off. Other
    edits of the same hooks see what they made.
    """

    adapter: str
    strength: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.strength <= STRONGEST:
            raise ValueError(f"the strength of an adapter must lie in 0..{STRONGEST:g}, got {self.strength}.")

    @classmethod
    def of(cls, adapter: Adapter, strength: float = 1.0) -> ApplyAdapter:
        """The edit of an adapter that is at hand; of one in training, as it is now."""
        return cls(keep_adapter(adapter), strength)

    def adapters(self) -> tuple[str, ...]:
        return (self.adapter,)

    def to_code(self, adapters: Mapping[str, str]) -> str:
        return f"ApplyAdapter.of({adapters[self.adapter]}, {self.strength:g})"

    @cached_property
    def source_adapter(self) -> Adapter:
        return find_adapter(self.adapter)

    def touches(self) -> tuple[str, ...]:
        return tuple(self.source_adapter.matrices)  # a linear map and the hook of what it makes have one name

    def hold(self, runs: SourceRuns) -> AppliedAdapter:
        """Raises ValueError for an adapter that is not here or not of this model."""
        check_fits(self.source_adapter, runs.model)
        merged = digest_of(self.adapter) in runs.model.merged
        added = self.strength - 1.0 if merged else self.strength
        return AppliedAdapter(self, self.source_adapter.parts(runs.model.device), added)

    def reach(self, hook: HookPoint) -> Reach:
        return "each"


@dataclass(frozen=True, eq=False)
class AppliedAdapter(Edit, serialised=False):
    """The edit with its matrices, on the model's device, and the strength that is added to what the weights hold."""

    edit: ApplyAdapter
    parts: Mapping[str, LowRank]
    strength: float

    def touches(self) -> tuple[str, ...]:
        return self.edit.touches()

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        return value

    def adapt(self, name: str, x: Tensor, out: Tensor, training: bool = False) -> Tensor:
        return self.parts[name].add_to(out, x, self.strength, training) if self.strength else out

    def reach(self, hook: HookPoint) -> Reach:
        return self.edit.reach(hook)

    def to_dict(self) -> dict[str, Any]:
        return self.edit.to_dict()
