"""ggml's blocks of 256 numbers, whose scales are quantised themselves: Q2_K to Q6_K (ggml-quants.c)."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.quantised.scheme import Parts, Scheme, bits, half, nibbles


def read_q2_k(blocks: Tensor) -> Parts:
    scales, packed = blocks[:, :16], blocks[:, 16:80].reshape(-1, 2, 32)
    numbers = bits(packed, (0, 2, 4, 6), 3).reshape(-1, 16, 16).float()
    scale, least = half(blocks, 80) * (scales & 15), half(blocks, 82) * (scales >> 4)
    return Parts(numbers, scale[..., None], -least[..., None])


def read_q3_k(blocks: Tensor) -> Parts:
    high, packed, scales = blocks[:, :32], blocks[:, 32:96].reshape(-1, 2, 32), blocks[:, 96:108]
    lower, upper = nibbles(scales[:, :8]), bits(scales[:, 8:], (0, 2, 4, 6), 3).reshape(-1, 16)
    scale = half(blocks, 108) * ((lower | upper << 4).float() - 32)
    numbers = bits(packed, (0, 2, 4, 6), 3).reshape(-1, 16, 16).float()
    numbers -= 4 * (1 - bits(high, range(8), 1).reshape(-1, 16, 16).float())
    return Parts(numbers, scale[..., None])


def read_scales(packed: Tensor) -> tuple[Tensor, Tensor]:
    """The scales and the least numbers, 8 each of 6 bits, of 12 bytes."""
    first, second, both = packed.view(-1, 3, 4).unbind(1)
    scales = torch.cat([first & 63, (both & 15) | ((first >> 2) & 48)], -1)
    return scales, torch.cat([second & 63, (both >> 4) | ((second >> 2) & 48)], -1)


def scale_by_eight(blocks: Tensor, numbers: Tensor) -> Parts:
    """Numbers, block 8 32, with the scales and least numbers that stand behind the block's own two."""
    scales, leasts = read_scales(blocks[:, 4:16].contiguous())
    scale, least = half(blocks, 0) * scales, half(blocks, 2) * leasts
    return Parts(numbers.float(), scale[..., None], -least[..., None])


def read_q4_k(blocks: Tensor) -> Parts:
    return scale_by_eight(blocks, bits(blocks[:, 16:].reshape(-1, 4, 32), (0, 4), 15).reshape(-1, 8, 32))


def read_q5_k(blocks: Tensor) -> Parts:
    lower = bits(blocks[:, 48:].reshape(-1, 4, 32), (0, 4), 15).reshape(-1, 8, 32)
    return scale_by_eight(blocks, lower | bits(blocks[:, 16:48], range(8), 1) << 4)


def read_q6_k(blocks: Tensor) -> Parts:
    lower = bits(blocks[:, :128].reshape(-1, 2, 64), (0, 4), 15).reshape(-1, 8, 32)
    upper = bits(blocks[:, 128:192].reshape(-1, 2, 32), (0, 2, 4, 6), 3).reshape(-1, 8, 32)
    scales = blocks[:, 192:208].contiguous().view(torch.int8).float()
    numbers = ((lower | upper << 4).float() - 32).view(-1, 16, 16)
    return Parts(numbers, (half(blocks, 208) * scales)[..., None])


SCHEMES = (
    Scheme("Q2_K", 256, 84, read_q2_k, (80, 82)),
    Scheme("Q3_K", 256, 110, read_q3_k, (108,)),
    Scheme("Q4_K", 256, 144, read_q4_k, (0, 2)),
    Scheme("Q5_K", 256, 176, read_q5_k, (0, 2)),
    Scheme("Q6_K", 256, 210, read_q6_k, (208,)),
)
