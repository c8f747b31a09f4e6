"""Where a token stands: the vectors, rotations and biases that tell the model, all computed in float32."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.model.config import Infill, Positions

Rotation = tuple[Tensor, Tensor]  # cos and sin, each (batch) pos turned
Rotations = Rotation | tuple[Rotation, Rotation]  # of both positions, where a token has two
NOWHERE = -1  # the position id of a token that an edit takes its position from


def sinusoidal(pos: Tensor, d_model: int, pairs: str | None = None) -> Tensor:
    """pos d_model: sin and cos at wavelengths 2 pi to 10000 x 2 pi (Vaswani et al. 2017, section 3.5).

    A sine's cosine is its neighbour, or, with `pairs` "halves", stands half the width further (Marian).
    """
    even = torch.arange(0, d_model, 2, dtype=torch.float32, device=pos.device)
    angle = pos[:, None] * torch.exp(even * (-math.log(10_000.0) / d_model))  # pos d_model/2
    if pairs == "halves":
        return torch.cat([angle.sin(), angle.cos()], dim=-1)[:, :d_model]
    return torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)[:, :d_model]


def rotation(pos: Tensor, frequencies: Tensor, pairs: str | None = None, attention: float = 1.0) -> Rotation:
    """cos and sin of every component's angle at each position, both ... pos turned, times `attention`."""
    angle = pos[..., None].float() * frequencies  # ... pos turned/2
    angle = angle.repeat_interleave(2, -1) if pairs == "neighbours" else torch.cat([angle, angle], -1)
    return (angle.cos(), angle.sin()) if attention == 1 else (angle.cos() * attention, angle.sin() * attention)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, pairs: str | None = None) -> Tensor:
    """Queries or keys `x` (batch pos head d_head), the first components turned, as many as `cos` has."""
    turned, rest = (
        (x, None) if cos.shape[-1] == x.shape[-1] else x.split([cos.shape[-1], x.shape[-1] - cos.shape[-1]], -1)
    )
    cos, sin = cos.unsqueeze(-2), sin.unsqueeze(-2)
    out = torch.addcmul(turned * cos, quarter(turned, pairs), sin)
    return out if rest is None else torch.cat([out, rest], dim=-1)


def quarter(x: Tensor, pairs: str | None) -> Tensor:
    """Every pair (a, b) turned by a quarter: (-b, a)."""
    if pairs == "neighbours":
        return torch.stack([-x[..., 1::2], x[..., ::2]], dim=-1).flatten(-2)
    left, right = x.chunk(2, dim=-1)
    return torch.cat([-right, left], dim=-1)


def rotate_both(x: Tensor, by: tuple[Rotation, Rotation], pairs: str | None) -> Tensor:
    """The first half of each head turned by one of two positions, the second half by the other (ChatGLM)."""
    halves = zip(x.chunk(2, dim=-1), by, strict=True)
    return torch.cat([rotate(half, cos, sin, pairs) for half, (cos, sin) in halves], dim=-1)


def alibi_slopes(heads: int) -> Tensor:
    """The geometric slopes of Press et al. 2022, section 3; their code's where `heads` is no power of two."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    slopes += [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return torch.tensor(slopes, device="cpu")


def alibi_bias(slopes: Tensor, pos: Tensor, key: Tensor) -> Tensor:
    """head pos key: minus slope times distance."""
    return -slopes[:, None, None] * (pos[:, None] - key).abs()


def relative_buckets(pos: Tensor, key: Tensor, positions: Positions, both_sides: bool) -> Tensor:
    """pos key: which of T5's buckets a distance falls into (Raffel et al. 2020, section 2.1, and their code).

    Half of the buckets are one distance each, the others grow with its logarithm. `both_sides` gives the keys after the
    query buckets of their own; otherwise they share the first.
    """
    distance = pos[:, None] - key
    count = positions.buckets // 2 if both_sides else positions.buckets
    side = (distance < 0) * count if both_sides else 0
    distance = distance.abs() if both_sides else distance.clamp(min=0)
    exact = count // 2
    growth = torch.log(distance.clamp(min=1).float() / exact) / math.log(positions.farthest / exact)
    far = (exact + (growth * (count - exact)).long()).clamp(max=count - 1)
    return torch.where(distance < exact, distance, far) + side


def distance_rows(pos: Tensor, key: Tensor, positions: Positions) -> Tensor:
    """pos key: which vector of disentangled positions a distance has (He et al. 2021, DeBERTa, equation 3, and the
    buckets of their code, which grow with the logarithm beyond half of them). Those ahead of the query come first."""
    distance = pos[:, None] - key
    span, middle = positions.span, positions.buckets // 2
    if positions.buckets:
        far = distance.abs().clamp(min=max(middle - 1, 1))
        growth = torch.log(far / middle) / torch.log(torch.tensor((positions.farthest - 1) / middle))
        near = far <= middle
        distance = torch.where(near, distance, (torch.ceil(growth * (middle - 1)) + middle).long() * distance.sign())
    return (distance + span).clamp(0, 2 * span - 1)


def infill_positions(ids: Tensor, infill: Infill) -> Tensor:
    """2 batch pos: where each token stands in the text, and where in the span it belongs to (Du et al. 2022, section
    2.1).

    `ids` is batch pos. A span beyond the last gap fills that one again; with no gap at all, spans stand where they
    begin.
    """
    index = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
    begins = ids == infill.start
    number = begins.cumsum(1)  # of the span a token belongs to; 0 is the text
    gaps = (ids == infill.mask) & (number == 0)
    count = gaps.sum(1, keepdim=True)
    table = torch.zeros(len(ids), ids.shape[1] + 1, dtype=torch.long, device=ids.device)
    table.scatter_(1, gaps.cumsum(1) * gaps, index)  # column n: where the n-th gap is
    began = torch.where(begins, index, 0).cummax(1).values
    gap = torch.where(count > 0, table.gather(1, torch.minimum(number, count)), began)
    inside = number > 0
    return torch.stack([torch.where(inside, gap, index), torch.where(inside, index - began + 1, 0)])


def prefix_lengths(ids: Tensor, infill: Infill) -> Tensor:
    """batch: how many tokens stand before the first span."""
    return ((ids == infill.start).cumsum(1) == 0).sum(1)
