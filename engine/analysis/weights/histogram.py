"""How the numbers of a tensor are distributed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

CHUNK = 1 << 18  # numbers that are widened at a time: 2 MB, which a cache holds
SPREADS = 6.0  # root mean squares to either side of zero; beyond lie 2 of 10^9 numbers of a normal distribution


@dataclass(frozen=True)
class Histogram:
    """`edges` (bins + 1) run from -limit to limit, `counts` (bins) sum to the number of elements.

    A bin holds its left edge; the first and the last also hold the `outside` elements beyond the limit. `std` is that
    of the elements themselves (divided by n), `norm` is Frobenius'.
    """

    edges: Tensor
    counts: Tensor
    mean: float
    std: float
    min: float
    max: float
    norm: float
    zeros: int
    outside: int


def histogram(tensor: Tensor, bins: int = 101) -> Histogram:
    """Symmetric about zero, as far as the largest magnitude or 6 root mean squares, whichever is nearer.

    Sums are taken in float64 of a part at a time. Raises ValueError for a tensor without elements and for fewer than
    one bin.
    """
    if bins < 1:
        raise ValueError(f"a histogram must have at least 1 bin, got {bins}.")
    if not tensor.numel():
        raise ValueError(f"a histogram must have something to count, got a tensor of {tuple(tensor.shape)}.")
    low, high = (end.item() for end in tensor.aminmax())
    total = torch.stack([torch.stack([part.sum(), part.dot(part)]) for part in as_float64_parts(tensor)]).sum(0)
    mean, square = (total / tensor.numel()).tolist()
    limit = min(max(-low, high), SPREADS * square**0.5) or 1.0
    counts, outside = torch.zeros(bins, dtype=torch.long), 0
    for part in as_float64_parts(tensor):
        index = part.add(limit).mul_(bins / (2 * limit)).floor_().clamp_(0, bins - 1).int()
        counts += torch.bincount(index, minlength=bins)
        outside += int((part.abs_() > limit).count_nonzero()) if max(-low, high) > limit else 0
    return Histogram(
        edges=torch.linspace(-limit, limit, bins + 1, dtype=torch.float64),
        counts=counts,
        mean=mean,
        std=standard_deviation(tensor, mean, square),
        min=low,
        max=high,
        norm=(square * tensor.numel()) ** 0.5,
        zeros=tensor.numel() - int(tensor.count_nonzero()),
        outside=outside,
    )


def as_float64_parts(tensor: Tensor) -> Iterator[Tensor]:
    """The elements in float64, a part at a time, each a copy."""
    for part in tensor.detach().flatten().split(CHUNK):
        yield part.to(torch.float64, copy=True)


def standard_deviation(tensor: Tensor, mean: float, square: float) -> float:
    """sqrt(E x^2 - (E x)^2), or a second pass over the elements where that would be lost in rounding."""
    variance = square - mean**2
    if variance > 1e-8 * square:
        return variance**0.5
    return (sum((part - mean).square_().sum().item() for part in as_float64_parts(tensor)) / tensor.numel()) ** 0.5
