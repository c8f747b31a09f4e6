"""Edits along one direction of a hook's value: its component taken out, or more of it added."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.edits.edit import ALL_REAL, Edit, Reach, RealTokens, Where, from_the_end, merge_at
from engine.model.hooks import HookPoint


@dataclass(frozen=True)
class DirectionEdit(Edit, serialised=False):
    """Base of edits along `direction`, as many numbers as the hook's last axis has, whose length does not count; at
    each position, or where `at` says."""

    hook: str
    direction: list[float]
    at: Where = field(default_factory=dict)

    def __post_init__(self) -> None:
        length = math.hypot(*self.direction)
        if not 1e-30 < length < 1e30:
            raise ValueError(f"a direction must be numbers that are not all 0, got one of length {length:g}.")

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def is_anchored(self, hook: HookPoint) -> bool:
        return from_the_end(self.at)

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt" if "pos" in self.at else "each"

    def unit(self, hook: HookPoint, value: Tensor) -> Tensor:
        """The direction with length 1. Raises ValueError for a hook that it does not fit."""
        axis, size = hook.axes[-1], value.shape[-1]
        if not value.is_floating_point() or axis in ("pos", "key"):
            raise ValueError(f"{hook.name} holds no vectors, and so has no direction; choose another value.")
        if len(self.direction) != size:
            raise ValueError(f"a direction of {hook.name} must be {size} numbers ({axis}), got {len(self.direction)}.")
        exact = torch.tensor(self.direction, dtype=torch.float64)
        return (exact / exact.norm()).to(value)


@dataclass(frozen=True)
class ProjectOut(DirectionEdit):
    """Let the component along `direction` be `value`; with 0 it is taken out, x - (x·u) u.

    With its mean over many texts the rest of the model reads a usual value, which says nothing of the text.
    """

    value: float = 0.0

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        unit = self.unit(hook, value)
        return merge_at(hook, value, self.at, value + (self.value - value @ unit)[..., None] * unit)


@dataclass(frozen=True)
class AddDirection(DirectionEdit):
    """Add `strength` times `amount` times the unit vector along `direction`.

    With the length of a steering vector as its amount, the strength counts in lengths of that vector.
    """

    amount: float = 1.0
    strength: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not math.isfinite(self.amount * self.strength):
            raise ValueError(
                f"an amount times its strength must be finite, got {self.amount:g} times {self.strength:g}."
            )

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        return merge_at(hook, value, self.at, value + self.strength * self.amount * self.unit(hook, value))
