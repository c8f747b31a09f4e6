"""ggml's blocks of 32 numbers with one scale: Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 (ggml-quants.c)."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.quantised.scheme import Scheme, half, nibbles


def fifth_bits(blocks: Tensor, at: int) -> Tensor:
    """The fifth bit of each of 32 numbers, which stand in four bytes."""
    shifts = torch.arange(8, dtype=torch.uint8, device=blocks.device)
    return ((blocks[:, at : at + 4, None] >> shifts) & 1).view(-1, 32)


def read_q4_0(blocks: Tensor) -> Tensor:
    return half(blocks, 0) * (nibbles(blocks[:, 2:]).float() - 8)


def read_q4_1(blocks: Tensor) -> Tensor:
    return half(blocks, 0) * nibbles(blocks[:, 4:]).float() + half(blocks, 2)


def read_q5_0(blocks: Tensor) -> Tensor:
    return half(blocks, 0) * ((nibbles(blocks[:, 6:]) | fifth_bits(blocks, 2) << 4).float() - 16)


def read_q5_1(blocks: Tensor) -> Tensor:
    return half(blocks, 0) * (nibbles(blocks[:, 8:]) | fifth_bits(blocks, 4) << 4).float() + half(blocks, 2)


def read_q8_0(blocks: Tensor) -> Tensor:
    return half(blocks, 0) * blocks[:, 2:].contiguous().view(torch.int8).float()


SCHEMES = (
    Scheme("Q4_0", 32, 18, read_q4_0, (0,)),
    Scheme("Q4_1", 32, 20, read_q4_1, (0, 2)),
    Scheme("Q5_0", 32, 22, read_q5_0, (0,)),
    Scheme("Q5_1", 32, 24, read_q5_1, (0, 2)),
    Scheme("Q8_0", 32, 34, read_q8_0, (0,)),
)
