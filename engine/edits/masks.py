"""Edits of who may attend to whom. They may allow what the model's own mask forbids, but never padding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from engine.edits.edit import ALL_REAL, Edit, Reach, RealTokens, Side, attention, heads_only, merge_at, query_positions
from engine.model.hooks import HookPoint
from engine.model.layers.mask import Causal, Full, Mask, Prefix, SlidingWindow

MaskName = Literal["causal", "full", "window", "causal window", "prefix"]
SIZED = ("window", "causal window", "prefix")


@dataclass(frozen=True)
class DrawMask(Edit):
    """Put a drawn mask (rows: queries, columns: keys, true = may attend) in place of a layer's own, or of all layers'.

    Written behind such a text, a token sees what the model's own mask allows.
    """

    layer: int | None
    allowed: list[list[bool]]
    heads: list[int] | None = None
    stack: Side | None = None
    cross: bool = False

    def touches(self) -> tuple[str, ...]:
        return (f"{attention(self.stack, self.layer, self.cross)}.mask",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        if len({len(row) for row in self.allowed}) > 1:
            raise ValueError("the rows of a drawn mask must be equally long; give each a value for every key.")
        drawn = torch.tensor(self.allowed, dtype=torch.bool, device=value.device)
        if drawn.shape != value.shape[-2:]:
            raise ValueError(
                f"the mask must have shape (pos, key)={tuple(value.shape[-2:])}, got {tuple(drawn.shape)}."
            )
        return merge_at(hook, value, heads_only(self.heads), exclude_padding(drawn, real).expand(value.shape))

    def is_anchored(self, hook: HookPoint) -> bool:
        return True


@dataclass(frozen=True)
class PresetMask(Edit):
    """Put a mask known by its name in place of a layer's own, or of all layers'.

    `window` sees keys fewer than `size` positions away, on both sides, `causal window` those of them that came before;
    `prefix` sees the first `size` keys and causally the rest.
    """

    kind: MaskName
    size: int | None = None
    layer: int | None = None
    heads: list[int] | None = None
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(MaskName):
            raise ValueError(f"a mask's kind must be one of {', '.join(get_args(MaskName))}, got {self.kind!r}.")
        if self.kind not in SIZED and self.size is not None:
            raise ValueError(f"a {self.kind} mask has no size, got {self.size}; leave it out.")
        if self.kind in SIZED and (self.size is None or self.size < 1):
            raise ValueError(f"a {self.kind} mask must have a size of at least 1, got {self.size}.")

    def touches(self) -> tuple[str, ...]:
        return (f"{attention(self.stack, self.layer, self.cross)}.mask",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        allowed = exclude_padding(self.mask.allows(*query_positions(hook, value)), real)
        return merge_at(hook, value, heads_only(self.heads), allowed.expand(value.shape))

    def reach(self, hook: HookPoint) -> Reach:
        return "each" if self.kind in ("causal", "causal window") and not self.cross else "whole"

    @property
    def mask(self) -> Mask:
        size = self.size or 0
        return {
            "causal": Causal(),
            "full": Full(),
            "window": SlidingWindow(size),
            "causal window": SlidingWindow(size) & Causal(),
            "prefix": Prefix(size),
        }[self.kind]


@dataclass(frozen=True)
class PaintMask(Edit):
    """Change single `cells` ([query, key]), whole `rows` (queries) and `columns` (keys) of the mask as it stands.

    `flip` turns what may be seen into what may not, and the reverse. In what is written behind the text a column goes
    on, and a row then covers the new keys too.
    """

    cells: list[list[int]] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    columns: list[int] = field(default_factory=list)
    to: Literal["flip", "allow", "forbid"] = "flip"
    layer: int | None = None
    heads: list[int] | None = None
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if self.to not in ("flip", "allow", "forbid"):
            raise ValueError(f"to must be flip, allow or forbid, got {self.to!r}.")
        if any(len(cell) != 2 for cell in self.cells):
            wrong = next(cell for cell in self.cells if len(cell) != 2)
            raise ValueError(f"a cell must be [query, key], got {wrong}.")
        places = [*self.rows, *self.columns, *(place for cell in self.cells for place in cell)]
        if not places:
            raise ValueError("a painted mask must name what is painted, got nothing; give cells, rows or columns.")
        if min(places) < 0:
            raise ValueError(f"rows, columns and cells count from 0, got {min(places)}.")

    def touches(self) -> tuple[str, ...]:
        return (f"{attention(self.stack, self.layer, self.cross)}.mask",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        painted = self.painted_cells(hook, value)
        if self.to == "flip":
            new = value ^ painted
        else:
            new = value | painted if self.to == "allow" else value & ~painted
        return merge_at(hook, value, heads_only(self.heads), exclude_padding(new, real))

    def painted_cells(self, hook: HookPoint, value: Tensor) -> Tensor:
        """pos key: what is painted. Raises ValueError for a place outside of the mask."""
        painted = torch.zeros(value.shape[-2:], dtype=torch.bool, device=value.device)
        pos, _ = query_positions(hook, value)
        first, last, keys = int(pos[0]), int(pos[-1]), value.shape[-1] - 1
        for row in [*self.rows, *(cell[0] for cell in self.cells)]:
            if not first <= row <= last:
                raise ValueError(f"the mask of {hook.name} has rows {first}..{last}, got {row}; paint within them.")
        for column in [*self.columns, *(cell[1] for cell in self.cells)]:
            if column > keys:
                raise ValueError(f"the mask of {hook.name} has columns 0..{keys}, got {column}; paint within them.")
        painted[[row - first for row in self.rows]] = True
        painted[:, self.columns] = True
        for row, column in self.cells:
            painted[row - first, column] = True
        return painted


def exclude_padding(allowed: Tensor, real: RealTokens) -> Tensor:
    """Restricts what is allowed (... pos key) to what is there, batch 1 pos key where the batch has padding."""
    return allowed if real.key is None else allowed & real.key[:, None, None, :]
