"""Edits of a mixture of experts: who is asked, how many are, and how much of it counts."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.edits.edit import ALL_REAL, Edit, Reach, RealTokens, merge_at, write_at
from engine.model.hooks import HookPoint


@dataclass(frozen=True)
class SilenceExperts(Edit):
    """Leave out what `experts` write; the router still sends tokens to them, and what others write stays as it is."""

    layer: int
    experts: list[int]

    def touches(self) -> tuple[str, ...]:
        return (f"blocks.{self.layer}.mlp.router.gain",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        return merge_at(hook, value, {"expert": self.experts}, torch.zeros_like(value))

    def reach(self, hook: HookPoint) -> Reach:
        return "each"


@dataclass(frozen=True)
class SendTokens(Edit):
    """Send the tokens at `positions`, None all of them, to `expert` in place of the one in a `slot`: 0 is the router's
    best. It counts by the probability that the router gives it."""

    layer: int
    expert: int
    positions: list[int] | None = None
    slot: int = 0

    def touches(self) -> tuple[str, ...]:
        return (f"blocks.{self.layer}.mlp.router.chosen",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        at = {"slot": self.slot} | ({} if self.positions is None else {"pos": self.positions})
        return write_at(hook, value, at, torch.tensor(self.expert, device=value.device))

    def is_anchored(self, hook: HookPoint) -> bool:
        return self.positions is not None

    def reach(self, hook: HookPoint) -> Reach:
        return "each" if self.positions is None else "prompt"


@dataclass(frozen=True)
class UseExperts(Edit):
    """Send each token to `used` experts, in one layer or in all."""

    used: int
    layer: int | None = None

    def __post_init__(self) -> None:
        if self.used < 1:
            raise ValueError(f"used must be at least 1 expert, got {self.used}.")

    def touches(self) -> tuple[str, ...]:
        return (f"blocks.{'*' if self.layer is None else self.layer}.mlp.router.used",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        return torch.full_like(value, self.used)

    def reach(self, hook: HookPoint) -> Reach:
        return "each"
