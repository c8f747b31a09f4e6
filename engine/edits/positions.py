"""Edits of where tokens stand, for positions of every kind alike.

Positions that are added to the embedding are the whole model's; those that turn queries and keys or add to the scores
can also be changed in one `layer`. A model that has no positions has nothing to change, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.edits.edit import ALL_REAL, Edit, RealTokens, Side, attention, selection
from engine.model.hooks import HookPoint
from engine.model.layers.position import NOWHERE


@dataclass(frozen=True)
class SwapPositions(Edit):
    """Give the tokens at two positions each other's position."""

    first: int
    second: int
    layer: int | None = None
    stack: Side | None = None

    def __post_init__(self) -> None:
        check_positions([self.first, self.second])

    def touches(self) -> tuple[str, ...]:
        return position_ids(self.stack, self.layer)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        selection(hook, value, {"pos": [self.first, self.second]})
        out = value.clone()
        out[self.first], out[self.second] = value[self.second], value[self.first]
        return out


@dataclass(frozen=True)
class DropPositions(Edit):
    """Take their position from tokens, None: from all. Nothing is added or turned for them, and no bias reaches them.

    Rotary angles are differences of positions, so that a token that is not turned stands where the first one does.
    """

    positions: list[int] | None = None
    layer: int | None = None
    stack: Side | None = None

    def __post_init__(self) -> None:
        check_positions(self.positions)

    def touches(self) -> tuple[str, ...]:
        return position_ids(self.stack, self.layer)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        out = value.clone()
        out[among(hook, value, self.positions)] = NOWHERE
        return out


@dataclass(frozen=True)
class ShiftPositions(Edit):
    """Let tokens, None: all, stand `by` positions further on; below 0: back.

    All of them together change nothing where only distances count: rotary, ALiBi, relative and disentangled positions.
    """

    by: int
    positions: list[int] | None = None
    layer: int | None = None
    stack: Side | None = None

    def __post_init__(self) -> None:
        check_positions(self.positions)

    def touches(self) -> tuple[str, ...]:
        return position_ids(self.stack, self.layer)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        picked = among(hook, value, self.positions) & (value != NOWHERE)
        out = torch.where(picked, value + self.by, value)
        if bool((out[picked] < 0).any()):
            lowest = int(out[picked].min())
            raise ValueError(f"a shift by {self.by} would leave a token at {lowest}, before the first; shift by less.")
        return out


def check_positions(positions: list[int] | None) -> None:
    if positions is not None and (not positions or min(positions) < 0):
        raise ValueError(f"positions must be one or more, counted from 0, got {positions}.")


def position_ids(stack: Side | None, layer: int | None) -> tuple[str, ...]:
    if layer is not None:
        return (f"{attention(stack, layer, cross=False)}.position_ids",)
    return (f"{stack}.*.position_ids" if stack else "*.position_ids",)


def among(hook: HookPoint, value: Tensor, positions: list[int] | None) -> Tensor:
    """Bool pos. Raises ValueError for a position that the text does not have."""
    if positions is None:
        return torch.ones_like(value, dtype=torch.bool)
    picked = torch.zeros_like(value, dtype=torch.bool)
    picked[selection(hook, value, {"pos": positions})] = True
    return picked
