"""Edits of heads: taken out, or their softmax heated and cooled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from engine.edits.edit import ALL_REAL, Edit, Reach, RealTokens, Side, attention, heads_only, merge_at
from engine.model.hooks import HookPoint


@dataclass(frozen=True)
class SilenceHeads(Edit):
    """Take heads out of the computation (Michel et al. 2019).

    `zero`: their z is 0. `mean`: their z at every position is its mean over the positions of the text.
    `uniform`: they attend equally to every key they may see.
    """

    layer: int
    heads: list[int]
    how: Literal["zero", "mean", "uniform"] = "zero"
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if self.how not in ("zero", "mean", "uniform"):
            raise ValueError(f"how must be zero, mean or uniform, got {self.how!r}.")

    def touches(self) -> tuple[str, ...]:
        part = "masked_scores" if self.how == "uniform" else "z"
        return (f"{attention(self.stack, self.layer, self.cross)}.{part}",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        if self.how == "uniform":
            quiet = level(value)
        else:
            quiet = mean_over_text(value, real.pos) if self.how == "mean" else torch.zeros_like(value)
        return merge_at(hook, value, {"head": self.heads}, quiet)

    def reach(self, hook: HookPoint) -> Reach:
        return "whole" if self.how == "mean" else "each"


@dataclass(frozen=True)
class AttentionTemperature(Edit):
    """Divide the masked scores by `value` before the softmax, in every attention of the model, or in those named."""

    value: float
    layer: int | None = None
    heads: list[int] | None = None
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if not self.value > 0:
            raise ValueError(f"an attention temperature must be above 0, got {self.value}.")

    def touches(self) -> tuple[str, ...]:
        if self.layer is None and self.stack is None and not self.cross:
            return ("*.temperature",)
        return (f"{attention(self.stack, self.layer, self.cross)}.temperature",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        return merge_at(hook, value, heads_only(self.heads), torch.full_like(value, self.value))

    def reach(self, hook: HookPoint) -> Reach:
        return "each"


def level(masked_scores: Tensor) -> Tensor:
    """The same score for every key that may be seen."""
    return torch.where(masked_scores.isneginf(), masked_scores, torch.zeros_like(masked_scores))


def mean_over_text(z: Tensor, real: Tensor | None) -> Tensor:
    """The mean of z (batch pos ...) over the positions where a token stands, batch 1 ..."""
    if real is None:
        return z.mean(1, keepdim=True)
    weight = real.view(*real.shape, *[1] * (z.dim() - 2)).to(z.dtype)
    return (z * weight).sum(1, keepdim=True) / weight.sum(1, keepdim=True)
