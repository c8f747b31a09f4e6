"""The singular values of a matrix, and what they say about its rank."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

ROWS = 2048  # of the longer side, widened at a time
BLOCKS = 4  # the Gram matrix is symmetric, so of a 4 x 4 grid of blocks 10 are computed
LEAST = 1e-7  # of the largest singular value: what is below it in a Gram matrix of float64 is rounding
SHARE = 0.9


@dataclass(frozen=True)
class Spectrum:
    """`values` are the singular values in float64, descending; below 1e-7 of the largest they are 0.

    `rank` is the effective rank exp(-sum p ln p), p = values / sum(values) (Roy & Vetterli 2007, section 2).
    `stable_rank` is |W|_F^2 / |W|_2^2, `condition` the largest value over the smallest (infinite for a singular
    matrix), `energy` how many values hold 90 % of the sum of squares. A matrix of zeros has ranks and energy 0.
    """

    values: Tensor
    rank: float
    stable_rank: float
    condition: float
    energy: int


def spectrum(matrix: Tensor) -> Spectrum:
    """Singular values of a matrix, rows columns: the roots of the eigenvalues of its smaller Gram matrix, in float64.

    Rounding then is 1e-8 of the largest value, less than that of float32 weights. Raises ValueError for what is no
    matrix.
    """
    if matrix.dim() != 2 or not matrix.numel():
        raise ValueError(f"a spectrum is that of a matrix, rows x columns, got a tensor of {tuple(matrix.shape)}.")
    tall = matrix if matrix.shape[0] >= matrix.shape[1] else matrix.mT
    return summarise_spectrum(torch.linalg.eigvalsh(gram(tall)).flip(0).clamp_(min=0).sqrt_())


def summarise_spectrum(values: Tensor) -> Spectrum:
    """`values` descending, in float64."""
    largest = values[0].item()
    if largest == 0:
        return Spectrum(values, 0.0, 0.0, float("inf"), 0)
    values = torch.where(values < LEAST * largest, 0.0, values)
    share, squares = values / values.sum(), values.square()
    smallest = values[-1].item()
    return Spectrum(
        values=values,
        rank=torch.special.entr(share).sum().exp().item(),
        stable_rank=squares.sum().item() / largest**2,
        condition=largest / smallest if smallest else float("inf"),
        energy=int((squares.cumsum(0) < SHARE * squares.sum()).count_nonzero()) + 1,
    )


def gram(tall: Tensor) -> Tensor:
    """W^T W in float64, columns columns, of which only the upper half is right; some rows are widened at a time."""
    width = tall.shape[1]
    edges = [width * i // BLOCKS for i in range(BLOCKS + 1)]
    product = torch.zeros(width, width, dtype=torch.float64, device=tall.device)
    for rows in tall.detach().split(ROWS):
        wide = rows.double()
        for start, end in zip(edges, edges[1:], strict=False):
            product[start:end, start:] += wide[:, start:end].mT @ wide[:, start:]
    return product.triu_().add_(product.triu(1).mT)
