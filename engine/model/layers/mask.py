"""Who may attend to whom: True = may. Each kind of mask is a small thing; `a & b` allows what both allow."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class Mask:
    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        """Bool, broadcastable to batch head pos key, for the positions of queries and keys (1-D, int)."""
        raise TypeError(f"{type(self).__name__} must say who may attend to whom.")

    def __and__(self, other: Mask) -> Mask:
        return IntersectionMask(self, other)


@dataclass(frozen=True)
class Full(Mask):
    """Everyone sees everyone (an encoder)."""

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        return torch.ones(len(pos), len(key), dtype=torch.bool, device=pos.device)

    def __and__(self, other: Mask) -> Mask:
        return other


@dataclass(frozen=True)
class Causal(Mask):
    """A query sees itself and what came before."""

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        return key <= pos[:, None]


@dataclass(frozen=True)
class SlidingWindow(Mask):
    """A query sees keys fewer than `size` positions away (Beltagy et al. 2020, Longformer).

    With `& Causal()` it is Mistral's.
    """

    size: int

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        return (pos[:, None] - key).abs() < self.size


@dataclass(frozen=True)
class Prefix(Mask):
    """The first `length` keys are visible to all, the rest causally (Raffel et al. 2020, section 3.2.1)."""

    length: int

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        return (key < self.length) | (key <= pos[:, None])


@dataclass(frozen=True, eq=False)
class RowPrefix(Mask):
    """`Prefix` with a length of its own for each text: `lengths` is batch."""

    lengths: Tensor

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        return (key < self.lengths[:, None, None, None]) | (key <= pos[:, None])


@dataclass(frozen=True)
class HiddenPosition(Mask):
    """Nobody but the position `at` itself sees it."""

    at: int

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        return (key != self.at) | (pos[:, None] == key)


@dataclass(frozen=True)
class Blocks(Mask):
    """A picture of `side` x `side` patches cut into squares of `block` x `block`: a patch sees its own square.

    Position 0 is [CLS], which sees and is seen by all. (Parmar et al. 2018, Image Transformer, section 3.2, with the
    memory block no larger than the query block.)
    """

    side: int
    block: int

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        same = self.square(pos)[:, None] == self.square(key)
        return same | (pos == 0)[:, None] | (key == 0)

    def square(self, pos: Tensor) -> Tensor:
        row, column = (pos - 1) // self.side, (pos - 1) % self.side
        return row // self.block * self.side + column // self.block


@dataclass(frozen=True, eq=False)
class Padding(Mask):
    """`real`: batch key, True where a token stands, False where the batch was filled up."""

    real: Tensor

    def __post_init__(self) -> None:
        _require_bool(self.real, "padding", (2,), "batch key")

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        return self.real[:, key][:, None, None, :]


@dataclass(frozen=True, eq=False)
class PaintedMask(Mask):
    """A mask painted by hand: `matrix` is pos key, or head pos key. Positions beyond it are not allowed."""

    matrix: Tensor

    def __post_init__(self) -> None:
        _require_bool(self.matrix, "a drawn mask", (2, 3), "pos key or head pos key")

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        rows, columns = self.matrix.shape[-2:]
        inside = (pos < rows)[:, None] & (key < columns)
        matrix = self.matrix.to(pos.device)
        return matrix[..., pos.clamp(max=rows - 1)[:, None], key.clamp(max=columns - 1)] & inside


@dataclass(frozen=True)
class IntersectionMask(Mask):
    left: Mask
    right: Mask

    def allows(self, pos: Tensor, key: Tensor) -> Tensor:
        return self.left.allows(pos, key) & self.right.allows(pos, key)


class AttentionMask:
    """Mask of one run, shared by all its layers; the tensor is made only if somebody looks at it."""

    def __init__(self, mask: Mask, pos: Tensor, key: Tensor) -> None:
        self.mask, self.pos, self.key = mask, pos, key
        self._tensor: Tensor | None = None
        self._expanded: Tensor | None = None

    @property
    def tensor(self) -> Tensor:
        """Bool, 4-D, each axis either full or 1: batch head pos key."""
        if self._tensor is None:  # a cached_property has a lock, at which torch.compile would break the graph
            allowed = self.mask.allows(self.pos, self.key)
            self._tensor = allowed.view((1,) * (4 - allowed.dim()) + allowed.shape)
        return self._tensor

    def expand_to(self, shape: torch.Size) -> Tensor:
        """`tensor` with the axes of the scores, one for all layers."""
        if self._expanded is None or self._expanded.shape != shape:
            self._expanded = self.tensor.expand(shape)
        return self._expanded

    @property
    def is_causal(self) -> bool:
        """The plain lower triangle, for which fused kernels have a faster path."""
        return isinstance(self.mask, Causal) and len(self.pos) == len(self.key)

    @property
    def allows_all(self) -> bool:
        """Known without looking: a full mask, or one new token after a cache."""
        return isinstance(self.mask, Full) or (isinstance(self.mask, Causal) and len(self.pos) == 1)

    @property
    def may_have_empty_rows(self) -> bool:
        """True if there may be a query that sees nothing; known without looking, and only of these, that none is."""
        return not isinstance(self.mask, Full | Causal)


def _require_bool(tensor: Tensor, what: str, ranks: tuple[int, ...], axes: str) -> None:
    if tensor.dtype != torch.bool:
        raise ValueError(f"{what} must be bool (True = may attend), got {tensor.dtype}.")
    if tensor.dim() not in ranks:
        raise ValueError(f"{what} must have axes {axes}, got shape {tuple(tensor.shape)}.")
