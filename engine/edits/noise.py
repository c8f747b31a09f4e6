"""Noise on a hook's value."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from engine.edits.edit import ALL_REAL, Edit, Reach, RealTokens, Where, from_the_end, merge_at
from engine.model.hooks import HookPoint


@dataclass(frozen=True)
class AddNoise(Edit):
    """Add normal noise of standard deviation `scale`, the same for the same `seed` (Meng et al. 2022, "Locating and
    Editing Factual Associations in GPT", section 2.1, which takes 3 times that of the embeddings)."""

    hook: str
    scale: float
    seed: int = 0
    at: Where = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.scale) and self.scale >= 0):
            raise ValueError(f"the scale of noise must be a finite number of at least 0, got {self.scale}.")
        if not 0 <= self.seed < 2**53:
            raise ValueError(f"the seed of noise must be a whole number of at least 0, got {self.seed}.")

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        if not value.is_floating_point() or "key" in hook.axes:
            raise ValueError(f"{hook.name} holds no vectors to add noise to; choose another value.")
        drawn = torch.randn(value.shape[1:], generator=torch.Generator().manual_seed(self.seed))
        return merge_at(hook, value, self.at, value + self.scale * drawn.to(value))

    def is_anchored(self, hook: HookPoint) -> bool:
        return from_the_end(self.at)

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt" if "pos" in self.at else "whole"
