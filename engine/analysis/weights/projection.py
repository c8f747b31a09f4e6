"""A table of vectors as points in the plane or in space, and which of its vectors are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.analysis.weights.spectrum import ROWS, gram
from engine.analysis.weights.tsne import embed

How = Literal["pca", "tsne"]
FIRST = 50  # components that t-SNE reads (van der Maaten & Hinton 2008, section 4.2: 30)
NEIGHBOURS = 30.0  # t-SNE's perplexity, where there are enough points for it
LARGE = 2e11  # multiplications of a covariance, which take some 10 s on one core
FEWEST = {"pca": 2, "tsne": 4}  # rows


@dataclass(frozen=True)
class Projection:
    """`points` is n axes, float32; `ids` (n) the rows of the table they stand for.

    `explained` are the shares of the variance along the axes; None for t-SNE, whose axes mean nothing.
    """

    points: Tensor
    ids: Tensor
    explained: tuple[float, ...] | None


@dataclass(frozen=True)
class Neighbours:
    """Rows of a table, the most similar first, with their cosine similarity."""

    ids: Tensor
    similarity: Tensor


def projection(table: Tensor, how: How = "pca", most: int = 2000, axes: int = 2) -> Projection:
    """`table` is n d_model. PCA: all rows, on the `axes` directions in which they vary most.

    t-SNE (van der Maaten & Hinton 2008) reads at most `most` rows, evenly spread over the ids from the first on, by
    their 50 leading principal components and starts from the first `axes`. Each direction of a PCA points where its
    largest entry is positive.

    Raises ValueError for a table of one row, and fewer than 4 for t-SNE.
    """
    rows, fewest = len(table) if table.dim() == 2 else 0, FEWEST[how]
    if rows < fewest:
        raise ValueError(f"a projection must have at least {fewest} rows to show, got {tuple(table.shape)}.")
    if how == "pca":
        found, shares = components(table, axes)
        return Projection(found.float(), torch.arange(rows), tuple(shares.tolist()))
    ids = torch.arange(min(rows, most)) * rows // min(rows, most)
    read = components(table[ids], FIRST)[0]
    start = read[:, :axes] / (float(read[:, 0].std(correction=0)) or 1.0) * 1e-4
    return Projection(embed(read, start, min(NEIGHBOURS, (len(ids) - 1) / 3)), ids, None)


def components(table: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The rows in their leading principal components (n most, float64), and each one's share of the variance (most).

    Where there are fewer than `most` dimensions the rest is 0.
    """
    mean = table.detach().mean(0, dtype=torch.float64)
    variance, directions, total = (lead if table.numel() * table.shape[1] > LARGE else decompose)(table, mean, most)
    largest = directions.abs().argmax(0, keepdim=True)
    directions = directions * directions.gather(0, largest).sign()
    found, shares = torch.zeros(len(table), most, dtype=torch.float64), torch.zeros(most, dtype=torch.float64)
    width = len(variance)
    for i, part in enumerate(table.detach().split(ROWS)):
        found[i * ROWS : (i + 1) * ROWS, :width] = (part.double() - mean) @ directions
    shares[:width] = variance / total if total > 0 else 0.0
    return found, shares


def decompose(table: Tensor, mean: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """Leading variances (most), their directions (d_model most) and the whole variance, all float64."""
    covariance = gram(table) / len(table) - mean.outer(mean)
    variance, directions = torch.linalg.eigh(covariance)
    return variance.flip(0)[:most].clamp(min=0), directions.flip(1)[:, :most], covariance.trace()


def lead(table: Tensor, mean: Tensor, most: int) -> tuple[Tensor, Tensor, Tensor]:
    """The same of a table whose covariance takes minutes: by Lanczos's method (Lehoucq et al. 1998, ARPACK), whose
    products with the table are in float32, to some 1e-4 of the variances."""
    from scipy.sparse.linalg import LinearOperator, eigsh  # type: ignore[import-untyped]  # slow to import

    rows, width = table.detach().float(), table.shape[1]
    rows = rows - mean.float()

    def multiply(vector: Any) -> Any:
        there = torch.from_numpy(vector.reshape(-1)).float()
        return (rows.mT @ (rows @ there) / len(rows)).double().numpy()

    covariance = LinearOperator((width, width), matvec=multiply, dtype="float64")
    variance, directions = eigsh(covariance, min(most, width - 1), tol=1e-5, v0=torch.ones(width).double().numpy())
    squares = sum(part.double().square().sum() for part in rows.split(ROWS))
    found = torch.from_numpy(variance).flip(0).clamp(min=0), torch.from_numpy(directions).flip(1)
    return *found, torch.as_tensor(squares) / len(rows)


def neighbours(table: Tensor, id: int, k: int = 10) -> Neighbours:
    """The `k` rows whose vectors have the largest cosine with row `id`, which is not one of them.

    A vector of zeros is like no other: its cosine is 0. Raises ValueError for an id outside the table.
    """
    if not 0 <= id < len(table):
        raise ValueError(f"an id must be 0 to {len(table) - 1}, got {id}.")
    wanted = unit(table[id])
    cosine = torch.cat([unit(part) @ wanted for part in table.detach().split(ROWS)])
    cosine[id] = -torch.inf
    best = cosine.topk(min(k, len(table) - 1))
    return Neighbours(best.indices, best.values)


def unit(vectors: Tensor) -> Tensor:
    """Scales each vector to length 1, in float32; a vector of zeros stays one."""
    return normalize(vectors.detach().float(), dim=-1)
