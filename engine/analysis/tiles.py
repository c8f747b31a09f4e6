"""Patterns of long texts, cut down to what a screen has room for, without losing a peak."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import adaptive_max_pool2d, pad

FULL = 255  # what 1 becomes in one byte
Window = tuple[int, int]  # from the first up to the second, which is not included


def overview(pattern: Tensor, side: int = 64) -> Tensor:
    """u8 ... pos key, at most `side` along each: a cell holds the largest weight of its block, so that no peak is lost.

    `pattern` is ... pos key, its weights in [0, 1]. A block is ceil(size / side) rows and columns, the last one what is
    left. A cell is ceil(255 w), at most 1/255 more than the weight: only 0 becomes 0, and 1 is 255.
    """
    rows, columns = (block(size, side) for size in pattern.shape[-2:])
    largest = peaks(peaks(pattern, -2, rows), -1, columns)
    return (largest.float() * FULL).ceil_().clamp_(max=FULL).to(torch.uint8)


def thumbnails(patterns: Tensor, side: int) -> Tensor:
    """u8 ... pos key of patterns ... pos key (three or four axes), exactly `side` along each where they have as many:
    each cell the largest weight of its square (255 = 1.0)."""
    sides = tuple(min(side, size) for size in patterns.shape[-2:])
    return (adaptive_max_pool2d(patterns.float(), sides) * FULL).round().to(torch.uint8)


@dataclass(frozen=True)
class Tile:
    """A window of a pattern: cell (i, j) is `weight`, f32 and exact, and stands at (`pos`, `key`) of the pattern.

    It is the largest of a block that begins `block` rows and columns after the one before; (1, 1) is every weight.
    """

    weight: Tensor
    pos: Tensor
    key: Tensor
    block: tuple[int, int]


def tile(pattern: Tensor, rows: Window, columns: Window, side: int = 128) -> Tile:
    """The window `rows` x `columns` of a pattern (pos key) in at most `side` cells along each.

    Of equal weights in a block it names the first. Raises ValueError for a window that is empty or not inside.
    """
    for name, (first, last), size in zip(("rows", "columns"), (rows, columns), pattern.shape, strict=True):
        if not 0 <= first < last <= size:
            raise ValueError(f"{name} must be a window inside 0..{size}, its end not included, got {first}..{last}.")
    window = pattern[slice(*rows), slice(*columns)].float()
    high, wide = (block(size, side) for size in window.shape)
    below, beside = -window.shape[0] % high, -window.shape[1] % wide
    filled = pad(window, (0, beside, 0, below), value=-torch.inf)
    blocks = filled.unflatten(1, (-1, wide)).unflatten(0, (-1, high)).transpose(1, 2)  # i j row column
    weight, at = blocks.flatten(2).max(-1)
    pos = torch.arange(rows[0], rows[1], high)[:, None] + at // wide
    key = torch.arange(columns[0], columns[1], wide) + at % wide
    return Tile(weight, pos, key, (high, wide))


@dataclass(frozen=True)
class TopKeys:
    """Heaviest keys of each row, ... k, the largest first; `rest` (...) is what all others have together."""

    key: Tensor
    weight: Tensor
    rest: Tensor


def top_keys(rows: Tensor, k: int) -> TopKeys:
    """`rows` are rows of a pattern, ... key; of fewer than `k` keys, all."""
    weight, key = rows.float().topk(min(k, rows.shape[-1]))
    return TopKeys(key, weight, rows.float().scatter(-1, key, 0.0).sum(-1))


def block(size: int, side: int) -> int:
    """Number of rows, or columns, that share a cell."""
    if side < 1:
        raise ValueError(f"a picture needs a side of at least one cell, got {side}.")
    return -(-size // side)


def peaks(values: Tensor, axis: int, size: int) -> Tensor:
    """The largest of every `size` values along `axis`, counted from the end (-1); the last may be of fewer."""
    if size == 1:
        return values
    whole = values.shape[axis] // size * size
    found = values.narrow(axis, 0, whole).unflatten(axis, (-1, size)).amax(axis)
    if whole == values.shape[axis]:
        return found
    left = values.narrow(axis, whole, values.shape[axis] - whole).amax(axis, keepdim=True)
    return torch.cat([found, left], axis)
