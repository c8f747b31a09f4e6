"""A scheme: how so many numbers of a row are packed into a block of bytes, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

TOGETHER = 2**19  # numbers that are decoded at a time: what is between bytes and numbers stays in the cache


class Parts(NamedTuple):
    """What numbers are stored as, each `scale` times `integers` plus `added`: float32 (block, ...), the last two of a
    shape that spreads over the first's; None added is 0."""

    integers: Tensor
    scale: Tensor
    added: Tensor | None = None


class StoredNumber(NamedTuple):
    """A number as it is stored: `scale` times `integer` plus `added`, if there is any, in float32."""

    integer: float
    scale: float
    added: float | None


@dataclass(frozen=True)
class Scheme:
    """`numbers` in a block of so many `bytes`. `unpack` makes of blocks (block bytes, uint8) the parts of their
    numbers; `scales` are where in a block its float16 numbers begin, which alone may not be finite.
    `encode` is the way there, to the nearest as ggml's reference rounds, None where Loupe has none."""

    name: str
    numbers: int
    bytes: int
    unpack: Callable[[Tensor], Parts]
    scales: Sequence[int] = ()
    encode: Callable[[Tensor], Tensor] | None = None

    @property
    def bits(self) -> float:
        """Bits that a number takes."""
        return 8 * self.bytes / self.numbers

    def decode(self, blocks: Tensor) -> Tensor:
        """Numbers of blocks, block numbers in float32."""
        parts = self.unpack(blocks)
        made = parts.scale * parts.integers
        if parts.added is not None:
            made += parts.added
        return made.view(-1, self.numbers)

    def as_stored(self, row: Tensor, index: int) -> StoredNumber:
        """Parts of one number of a row (bytes)."""
        block, at = divmod(index, self.numbers)
        parts = self.unpack(row.view(-1, self.bytes)[block : block + 1])
        whole = parts.integers.shape
        integer, scale, *added = (float(part.expand(whole).reshape(-1)[at]) for part in parts if part is not None)
        return StoredNumber(integer, scale, added[0] if added else None)

    def read(self, rows: Tensor) -> Tensor:
        """Numbers of rows of blocks: ... bytes in, ... numbers out."""
        blocks = rows.reshape(-1, self.bytes)
        made = torch.empty(len(blocks), self.numbers, device=rows.device)
        step = max(1, TOGETHER // self.numbers)
        for at in range(0, len(blocks), step):
            made[at : at + step] = self.decode(blocks[at : at + step])
        return made.view(*rows.shape[:-1], -1)

    def check_written(self, numbers: int) -> None:
        """Raises ValueError for rows of so many numbers that are no whole blocks, and for a scheme that is only
        read."""
        if self.encode is None:
            raise ValueError(f"{self.name} is read and not written; choose another scheme.")
        if numbers % self.numbers:
            raise ValueError(
                f"rows that become {self.name} must be whole blocks of {self.numbers} numbers, got {numbers}."
            )

    def write(self, rows: Tensor) -> Tensor:
        """Bytes of rows: ... numbers in, ... bytes out. Raises ValueError as `check_written`."""
        self.check_written(rows.shape[-1])
        assert self.encode is not None
        made = self.encode(rows.float().reshape(-1, self.numbers))
        return made.view(*rows.shape[:-1], -1)

    def is_finite(self, rows: Tensor) -> bool:
        """Tells whether every number is finite, by the scales where there are any."""
        if not self.scales:
            return bool(self.read(rows).isfinite().all())
        blocks = rows.reshape(-1, self.bytes)
        return all(bool(half(blocks, at).isfinite().all()) for at in self.scales)


def half(blocks: Tensor, at: int) -> Tensor:
    """The float16 that stands at a byte of each block, in float32, block 1."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def nibbles(packed: Tensor) -> Tensor:
    """The lower halves of bytes, and behind them the upper ones: ... byte in, ... 2·byte out."""
    return torch.cat([packed & 15, packed >> 4], -1)


def bits(packed: Tensor, shifts: Sequence[int], mask: int) -> Tensor:
    """The fields of bytes at each shift: block ... byte in, block ... shift byte out."""
    at = torch.tensor(shifts, dtype=torch.uint8, device=packed.device).view(-1, 1)
    return (packed[..., None, :] >> at) & mask
