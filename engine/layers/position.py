"""Where a token stands: the vectors, rotations and biases that tell the model, all computed in float32."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def sinusoidal(pos: Tensor, d_model: int) -> Tensor:
    """pos d_model: sin and cos at wavelengths 2 pi to 10000 x 2 pi (Vaswani et al. 2017, section 3.5)."""
    even = torch.arange(0, d_model, 2, dtype=torch.float32, device=pos.device)
    angle = pos[:, None] * torch.exp(even * (-math.log(10_000.0) / d_model))  # pos d_model/2
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


def rotary_frequencies(d_head: int, theta: float) -> Tensor:
    """d_head/2: radians a token by which each pair (i, i + d_head/2) turns (Su et al. 2021, section 3.4)."""
    even = torch.arange(0, d_head, 2, dtype=torch.float32, device="cpu")
    return theta ** (-even / d_head)


def rotation(pos: Tensor, frequencies: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of every pair's angle at each position, both pos d_head."""
    angle = torch.outer(pos.float(), frequencies).repeat(1, 2)
    return angle.cos(), angle.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Queries or keys `x` (batch pos head d_head), turned."""
    left, right = x.chunk(2, dim=-1)
    return x * cos[:, None] + torch.cat([-right, left], dim=-1) * sin[:, None]


def alibi_slopes(heads: int) -> Tensor:
    """The geometric slopes of Press et al. 2022, section 3; their code's where `heads` is no power of two."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    slopes += [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return torch.tensor(slopes, device="cpu")


def alibi_bias(slopes: Tensor, pos: Tensor, key: Tensor) -> Tensor:
    """head pos key: minus slope times distance."""
    return -slopes[:, None, None] * (pos[:, None] - key).abs()
