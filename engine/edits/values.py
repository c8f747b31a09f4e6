"""Edits of any hook's value: scaled, or replaced by numbers that the edit carries."""

from __future__ import annotations

from dataclasses import dataclass, field
from reprlib import repr as shortened
from typing import Any

import torch
from torch import Tensor

from engine.edits.edit import ALL_REAL, Edit, Reach, RealTokens, Where, from_the_end, merge_at, write_at
from engine.model.hooks import HookPoint


@dataclass(frozen=True)
class Scale(Edit):
    """Multiply a hook's value by `factor`, everywhere or where `at` says ({"pos": 3, "head": [0, 1]}).

    With 0 it takes out what the hook stands for: `engine.edits.parts` lists the parts of a block.
    """

    hook: str
    factor: float
    at: Where = field(default_factory=dict)

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        if value.dtype == torch.bool:
            raise ValueError(f"{hook.name} is true or false and has no scale; use Replace or DrawMask.")
        if not value.is_floating_point():
            other = "ShiftPositions or DropPositions" if hook.name.endswith("position_ids") else "Replace"
            raise ValueError(f"{hook.name} holds whole numbers and has no scale; use {other}.")
        return merge_at(hook, value, self.at, value * self.factor)

    def is_anchored(self, hook: HookPoint) -> bool:
        return from_the_end(self.at)

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt" if "pos" in self.at else "each"


@dataclass(frozen=True)
class Replace(Edit):
    """Put `value` (a number, or nested lists that broadcast to what `at` picks) in place of a hook's."""

    hook: str
    value: float | list[Any]
    at: Where = field(default_factory=dict)

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        try:
            new = torch.as_tensor(self.value, dtype=value.dtype, device=value.device)
        except (TypeError, ValueError, RuntimeError, OverflowError):
            got = shortened(self.value)
            raise ValueError(f"what replaces {hook.name} must be a number or even lists of them, got {got}.") from None
        return write_at(hook, value, self.at, new)

    def is_anchored(self, hook: HookPoint) -> bool:
        return from_the_end(self.at) or self.spans_text(hook)

    def spans_text(self, hook: HookPoint) -> bool:
        """True if the lists go as deep as to an axis of the text, other than one that `at` picks from."""
        left = [axis for axis in hook.axes if not isinstance(self.at.get(axis), int)]
        deep = left[len(left) - depth(self.value) :] if depth(self.value) else []
        return any(axis in ("pos", "key") and axis not in self.at for axis in deep)

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt" if "pos" in self.at or self.spans_text(hook) else "each"


def depth(value: float | list[Any]) -> int:
    return 1 + depth(value[0]) if isinstance(value, list) and value else int(isinstance(value, list))
