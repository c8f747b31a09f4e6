"""Edits that say what a head attends to, whatever its scores are. Another head's pattern is put there by `Patch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from engine.edits.edit import ALL_REAL, Edit, Reach, Real, Side, attention, chosen, heads_only, query_positions
from engine.edits.heads import level
from engine.hooks import HookPoint

PatternName = Literal["uniform", "previous", "first", "itself"]
NAMES: tuple[PatternName, ...] = ("uniform", "previous", "first", "itself")
SLACK = 1e-4  # of a row's sum, for weights that were rounded


@dataclass(frozen=True)
class SetPattern(Edit):
    """Let heads attend to one thing alone, whether or not the mask allows it; or evenly to all that it allows.

    The first token, which has none before it, is its own `previous` one.
    """

    layer: int | None
    to: PatternName
    heads: list[int] | None = None
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if self.to not in NAMES:
            raise ValueError(f"to must be one of {', '.join(NAMES)}, got {self.to!r}.")
        if self.cross and self.to in ("previous", "itself"):
            raise ValueError(f"{self.to} is a token of the same text, and cross-attention reads another; use first.")

    def touches(self) -> tuple[str, ...]:
        part = "masked_scores" if self.to == "uniform" else "pattern"
        return (f"{attention(self.stack, self.layer, self.cross)}.{part}",)

    def apply(self, hook: HookPoint, value: Tensor, real: Real = ALL_REAL) -> Tensor:
        if self.to == "uniform":
            return chosen(hook, value, heads_only(self.heads), level(value))
        pos, keys = query_positions(hook, value)
        seen = {"previous": (pos - 1).clamp(min=0), "first": torch.zeros_like(pos), "itself": pos}[self.to]
        pattern = one_hot(seen, len(keys)).to(value.dtype)
        return chosen(hook, value, heads_only(self.heads), pattern.expand(value.shape))

    def reach(self, hook: HookPoint) -> Reach:
        return "each"


@dataclass(frozen=True)
class DrawPattern(Edit):
    """Put `weights` (rows: queries, columns: keys) in place of heads' pattern; `free` ones need not sum to 1.

    Written behind such a text, a token attends as the head itself does.
    """

    layer: int | None
    weights: list[list[float]]
    heads: list[int] | None = None
    free: bool = False
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if len({len(row) for row in self.weights}) != 1 or not self.weights[0]:
            raise ValueError("the rows of a pattern must be equally long; give each a weight for every key.")
        for number, row in enumerate(self.weights):
            if not self.free and not (abs(sum(row) - 1) <= SLACK and min(row) >= 0):
                raise ValueError(
                    f"row {number} of a pattern must hold weights from 0 on that sum to 1, got a sum of {sum(row):g}; "
                    "change them, or set free."
                )

    def touches(self) -> tuple[str, ...]:
        return (f"{attention(self.stack, self.layer, self.cross)}.pattern",)

    def apply(self, hook: HookPoint, value: Tensor, real: Real = ALL_REAL) -> Tensor:
        drawn = torch.tensor(self.weights, dtype=value.dtype, device=value.device)
        if drawn.shape != value.shape[-2:]:
            raise ValueError(
                f"the pattern must have shape (pos, key)={tuple(value.shape[-2:])}, got {tuple(drawn.shape)}."
            )
        return chosen(hook, value, heads_only(self.heads), drawn.expand(value.shape))

    def anchored(self, hook: HookPoint) -> bool:
        return True
