"""ggml's blocks of 32 numbers with one scale: Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 (ggml-quants.c)."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.quantised.scheme import Parts, Scheme, half, nibbles


def fifth_bits(blocks: Tensor, at: int) -> Tensor:
    """The fifth bit of each of 32 numbers, which stand in four bytes."""
    shifts = torch.arange(8, dtype=torch.uint8, device=blocks.device)
    return ((blocks[:, at : at + 4, None] >> shifts) & 1).view(-1, 32)


def read_q4_0(blocks: Tensor) -> Parts:
    return Parts(nibbles(blocks[:, 2:]).float() - 8, half(blocks, 0))


def read_q4_1(blocks: Tensor) -> Parts:
    return Parts(nibbles(blocks[:, 4:]).float(), half(blocks, 0), half(blocks, 2))


def read_q5_0(blocks: Tensor) -> Parts:
    return Parts((nibbles(blocks[:, 6:]) | fifth_bits(blocks, 2) << 4).float() - 16, half(blocks, 0))


def read_q5_1(blocks: Tensor) -> Parts:
    return Parts((nibbles(blocks[:, 8:]) | fifth_bits(blocks, 4) << 4).float(), half(blocks, 0), half(blocks, 2))


def read_q8_0(blocks: Tensor) -> Parts:
    return Parts(blocks[:, 2:].contiguous().view(torch.int8).float(), half(blocks, 0))


# --- The way there ---


def inverse(scale: Tensor) -> Tensor:
    return torch.where(scale == 0, 0.0, 1 / scale)


def as_half(scale: Tensor) -> Tensor:
    """Two bytes of the float16 nearest to each scale, block 2."""
    return scale.to(torch.float16).contiguous().view(torch.uint8)


def pack_nibbles(numbers: Tensor) -> Tensor:
    """Halves of bytes of 32 numbers from 0 to 15, block 16."""
    return numbers[:, :16] | numbers[:, 16:] << 4


def pack_fifth_bits(numbers: Tensor) -> Tensor:
    shifts = torch.arange(8, dtype=torch.uint8, device=numbers.device)
    return ((numbers >> 4).view(-1, 4, 8) << shifts).sum(-1, dtype=torch.uint8)


def round_signed(blocks: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The scale with which the largest number is the end of the range, and the numbers, from 0 on."""
    largest = blocks.gather(1, blocks.abs().argmax(1, keepdim=True))
    scale = largest / -(most + 1)
    numbers = (blocks.double() * inverse(scale).double() + (most + 1.5)).trunc().clamp(0, 2 * most + 1)
    return scale, numbers.to(torch.uint8)


def between(blocks: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """The scale from the least to the largest number, the least, and the numbers from 0 to `most`."""
    least, largest = blocks.amin(1, keepdim=True), blocks.amax(1, keepdim=True)
    scale = (largest - least) / most
    numbers = ((blocks - least) * inverse(scale) + 0.5).trunc().clamp(0, most)
    return scale, least, numbers.to(torch.uint8)


def write_q4_0(blocks: Tensor) -> Tensor:
    scale, numbers = round_signed(blocks, 7)
    return torch.cat([as_half(scale), pack_nibbles(numbers)], 1)


def write_q4_1(blocks: Tensor) -> Tensor:
    scale, least, numbers = between(blocks, 15)
    return torch.cat([as_half(scale), as_half(least), pack_nibbles(numbers)], 1)


def write_q5_0(blocks: Tensor) -> Tensor:
    scale, numbers = round_signed(blocks, 15)
    return torch.cat([as_half(scale), pack_fifth_bits(numbers), pack_nibbles(numbers & 15)], 1)


def write_q5_1(blocks: Tensor) -> Tensor:
    scale, least, numbers = between(blocks, 31)
    return torch.cat([as_half(scale), as_half(least), pack_fifth_bits(numbers), pack_nibbles(numbers & 15)], 1)


def write_q8_0(blocks: Tensor) -> Tensor:
    scale = blocks.abs().amax(1, keepdim=True) / 127
    scaled = blocks * inverse(scale)
    numbers = scaled.sign() * (scaled.abs() + 0.5).floor()
    return torch.cat([as_half(scale), numbers.to(torch.int8).view(torch.uint8)], 1)


SCHEMES = (
    Scheme("Q4_0", 32, 18, read_q4_0, (0,), write_q4_0),
    Scheme("Q4_1", 32, 20, read_q4_1, (0, 2), write_q4_1),
    Scheme("Q5_0", 32, 22, read_q5_0, (0,), write_q5_0),
    Scheme("Q5_1", 32, 24, read_q5_1, (0, 2), write_q5_1),
    Scheme("Q8_0", 32, 34, read_q8_0, (0,), write_q8_0),
)
