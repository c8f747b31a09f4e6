"""Edits that say what a head attends to, whatever its scores are. Another head's pattern is put there by `Patch`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from engine.edits.edit import ALL_REAL, Edit, Reach, RealTokens, Side, attention, heads_only, merge_at, query_positions
from engine.edits.heads import level
from engine.model.hooks import HookPoint
from engine.plurals import count_words

PatternName = Literal["uniform", "previous", "first", "itself", "position"]
NAMES: tuple[PatternName, ...] = ("uniform", "previous", "first", "itself", "position")
POSITIONED = {True: "a position, counted from 0", False: "no position"}
SLACK = 1e-4  # of a row's sum, for weights that were rounded


@dataclass(frozen=True)
class SetPattern(Edit):
    """Let heads attend to one thing alone, whether or not the mask allows it; or evenly to all that it allows.

    The first token, which has none before it, is its own `previous` one. `position` counts the keys from 0, for `to`
    "position" alone.
    """

    layer: int | None
    to: PatternName
    heads: list[int] | None = None
    stack: Side | None = None
    cross: bool = False
    position: int | None = None

    def __post_init__(self) -> None:
        if self.to not in NAMES:
            raise ValueError(f"to must be one of {', '.join(NAMES)}, got {self.to!r}.")
        if self.cross and self.to in ("previous", "itself"):
            raise ValueError(f"{self.to} is a token of the same text, and cross-attention reads another; use first.")
        if (self.position is not None) != (self.to == "position") or (self.position or 0) < 0:
            raise ValueError(f"{self.to} must have {POSITIONED[self.to == 'position']}, got {self.position}.")

    def touches(self) -> tuple[str, ...]:
        part = "masked_scores" if self.to == "uniform" else "pattern"
        return (f"{attention(self.stack, self.layer, self.cross)}.{part}",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        if self.to == "uniform":
            return merge_at(hook, value, heads_only(self.heads), level(value))
        pos, keys = query_positions(hook, value)
        pattern = one_hot(self.target_key(pos, keys), len(keys)).to(value.dtype)
        return merge_at(hook, value, heads_only(self.heads), pattern.expand(value.shape))

    def target_key(self, pos: Tensor, keys: Tensor) -> Tensor:
        """The one key of every query."""
        only = self.position or 0
        if only >= len(keys):
            raise ValueError(f"there are the keys 0..{len(keys) - 1} to attend to, got {only}; name one of them.")
        at_one = torch.full_like(pos, only)
        return {"previous": (pos - 1).clamp(min=0), "itself": pos}.get(self.to, at_one)

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

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        drawn = torch.tensor(self.weights, dtype=value.dtype, device=value.device)
        if drawn.shape != value.shape[-2:]:
            raise ValueError(
                f"the pattern must have shape (pos, key)={tuple(value.shape[-2:])}, got {tuple(drawn.shape)}."
            )
        return merge_at(hook, value, heads_only(self.heads), drawn.expand(value.shape))

    def is_anchored(self, hook: HookPoint) -> bool:
        return True


@dataclass(frozen=True)
class PaintPattern(Edit):
    """Give single `cells` ([query, key]) of heads' pattern these `weights`, one each, and leave the others to the head.

    Rows go on summing to 1: what a painted row has left goes to its other keys in the proportions that they had, and
    weights of more than 1 together, or of less where no other key has any, are divided by their sum. `free` rows keep
    every other weight as it is.
    """

    layer: int | None
    cells: list[list[int]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    heads: list[int] | None = None
    free: bool = False
    stack: Side | None = None
    cross: bool = False

    def __post_init__(self) -> None:
        if not self.cells or len(self.cells) != len(self.weights):
            raise ValueError(
                f"a painted pattern must have one weight a cell, got {count_words(len(self.cells), 'cell')} and "
                f"{count_words(len(self.weights), 'weight')}; paint at least one."
            )
        wrong = next((cell for cell in self.cells if len(cell) != 2 or min(cell) < 0), None)
        if wrong is not None:
            raise ValueError(f"a cell must be [query, key], both counted from 0, got {wrong}.")
        if not self.free and min(self.weights) < 0:
            raise ValueError(f"the weights of a pattern must be 0 or more, got {min(self.weights):g}; or set free.")

    def touches(self) -> tuple[str, ...]:
        return (f"{attention(self.stack, self.layer, self.cross)}.pattern",)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        first, rows, columns = self.places(hook, value)
        weights = torch.tensor(self.weights, dtype=value.dtype, device=value.device)
        painted = torch.zeros(value.shape[-2:], dtype=torch.bool, device=value.device)
        given = torch.zeros(value.shape[-2:], dtype=value.dtype, device=value.device)
        for row, column, weight in zip(rows, columns, weights, strict=True):  # of a cell painted twice, the last
            painted[row - first, column] = True
            given[row - first, column] = weight
        new = torch.where(painted, given, value)
        new = new if self.free else summing_to_one(value, painted, given)
        return merge_at(hook, value, heads_only(self.heads), new)

    def places(self, hook: HookPoint, value: Tensor) -> tuple[int, list[int], list[int]]:
        """The first row that is here, and the rows and columns of the cells. Raises ValueError for one outside."""
        pos, keys = query_positions(hook, value)
        first, last = int(pos[0]), int(pos[-1])
        rows, columns = zip(*self.cells, strict=True)
        row = next((row for row in rows if not first <= row <= last), None)
        if row is not None:
            raise ValueError(f"{hook.name} has rows {first}..{last}, got {row}; paint within them.")
        if max(columns) >= len(keys):
            raise ValueError(f"{hook.name} has columns 0..{len(keys) - 1}, got {max(columns)}; paint within them.")
        return first, list(rows), list(columns)

    def reach(self, hook: HookPoint) -> Reach:
        return "prompt"


def summing_to_one(pattern: Tensor, painted: Tensor, given: Tensor) -> Tensor:
    """`pattern` (... pos key) with `given` (pos key) where `painted` (pos key) says, rows that are painted sum to 1.

    A row of which nothing is left is empty, as that of a query that may see nothing is.
    """
    others = pattern.masked_fill(painted, 0)
    taken, left = given.sum(-1, keepdim=True), others.sum(-1, keepdim=True)
    scale = torch.where(left > 0, (1 - taken).clamp(min=0) / left.clamp(min=torch.finfo(pattern.dtype).tiny), 0)
    whole = others * scale + given
    total = whole.sum(-1, keepdim=True)
    whole = torch.where(total > 0, whole / total.clamp(min=torch.finfo(pattern.dtype).tiny), 0)
    return torch.where(painted.any(-1, keepdim=True), whole, pattern)
