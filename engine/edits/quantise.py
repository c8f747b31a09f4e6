"""Linear maps that compute with other weights: those that a scheme of few bits would leave of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from engine.edits.edit import Edit, Reach
from engine.edits.sources import FetchingEdit, SourceRuns
from engine.model.hooks import HookPoint
from engine.model.layers.lora import find_targets, list_linears
from engine.model.quantised import SCHEMES
from engine.runtime.lru_cache import LruCache

WRITTEN = tuple(name for name, scheme in SCHEMES.items() if scheme.encode)
_changes: LruCache[Tensor] = LruCache(2**28)


@dataclass(frozen=True)
class QuantiseMaps(FetchingEdit):
    """Let the linear maps `names` ("blocks.0.attn.q"; ends of names and patterns stand for several) have the weights
    that a scheme, such as Q4_0, leaves of theirs."""

    scheme: str
    names: list[str]

    def __post_init__(self) -> None:
        if self.scheme not in WRITTEN:
            raise ValueError(f"scheme must be one of {', '.join(WRITTEN)}, got {self.scheme!r:.40}.")
        if not self.names:
            raise ValueError("the maps that are quantised must be named, got none; name one.")

    def touches(self) -> tuple[str, ...]:
        return tuple(
            name if name.startswith(("blocks.", "encoder.", "decoder.")) else f"*.{name}" for name in self.names
        )

    def hold(self, runs: SourceRuns) -> ExchangedMaps:
        """Raises ValueError for a map that the model lacks, or whose rows are no whole blocks."""
        found = find_targets(runs.model, self.names)
        return ExchangedMaps({name: quantised_change(runs.model, name, self.scheme) for name in found}, self)

    def reach(self, hook: HookPoint) -> Reach:
        return "each"


@dataclass(frozen=True, eq=False)
class ExchangedMaps(Edit, serialised=False):
    """Linear maps whose weights are changed by `changes` (out in), by name."""

    changes: Mapping[str, Tensor]
    edit: QuantiseMaps | None = None

    def touches(self) -> tuple[str, ...]:
        return tuple(self.changes)

    def apply(self, hook: HookPoint, value: Tensor, real: Any = None) -> Tensor:
        return value

    def adapt(self, name: str, x: Tensor, out: Tensor, training: bool = False) -> Tensor:
        return out + linear(x, self.changes[name].to(x))

    def reach(self, hook: HookPoint) -> Reach:
        return "each"

    def to_dict(self) -> dict[str, Any]:
        if self.edit is None:
            raise TypeError("weights of another model cannot be said in an edit.")
        return self.edit.to_dict()


@torch.no_grad()
def quantised_change(model: nn.Module, name: str, scheme: str) -> Tensor:
    """Finds what a scheme changes the weights of a linear map by, out in. Raises ValueError for rows that are no whole
    blocks."""
    if (known := _changes.find((model, name, scheme))) is not None:
        return known
    weight = list_linears(model)[name].weight.detach().float()
    try:
        change = SCHEMES[scheme].read(SCHEMES[scheme].write(weight)) - weight
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    return _changes.keep((model, name, scheme), change, change.nbytes)
