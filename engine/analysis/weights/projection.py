"""A table of vectors as points in the plane or in space, and which of its vectors are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import normalize

from engine.analysis.weights.spectrum import ROWS, gram

How = Literal["pca", "tsne"]
FIRST = 50  # components that t-SNE reads (van der Maaten & Hinton 2008, section 4.2: 30)
NEIGHBOURS = 30.0  # t-SNE's perplexity, where there are enough points for it
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


def projection(table: Tensor, how: How = "pca", most: int = 2000, seed: int = 0, axes: int = 2) -> Projection:
    """`table` is n d_model. PCA: all rows, on the `axes` directions in which they vary most, exactly.

    t-SNE (van der Maaten & Hinton 2008; scikit-learn's, Barnes-Hut) reads at most `most` rows, evenly spread over the
    ids from the first on, by their 50 leading principal components and starts from the first `axes`. Each direction
    of a PCA points where its largest entry is positive.

    Raises ValueError for a table of one row, and fewer than 4 for t-SNE.
    """
    rows, fewest = len(table) if table.dim() == 2 else 0, FEWEST[how]
    if rows < fewest:
        raise ValueError(f"a projection must have at least {fewest} rows to show, got {tuple(table.shape)}.")
    if how == "pca":
        found, shares = components(table, axes)
        return Projection(found.float(), torch.arange(rows), tuple(shares.tolist()))
    ids = torch.arange(min(rows, most)) * rows // min(rows, most)
    return Projection(tsne(table[ids], seed, axes), ids, None)


def components(table: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The rows in their leading principal components (n most, float64), and each one's share of the variance (most).

    Where there are fewer than `most` dimensions the rest is 0.
    """
    mean = table.detach().mean(0, dtype=torch.float64)
    covariance = gram(table) / len(table) - mean.outer(mean)
    variance, directions = torch.linalg.eigh(covariance)
    variance, directions = variance.flip(0)[:most].clamp(min=0), directions.flip(1)[:, :most]
    largest = directions.abs().argmax(0, keepdim=True)
    directions = directions * directions.gather(0, largest).sign()
    found, shares = torch.zeros(len(table), most, dtype=torch.float64), torch.zeros(most, dtype=torch.float64)
    width, total = len(variance), covariance.trace()
    for i, part in enumerate(table.detach().split(ROWS)):
        found[i * ROWS : (i + 1) * ROWS, :width] = (part.double() - mean) @ directions
    shares[:width] = variance / total if total > 0 else 0.0
    return found, shares


def tsne(rows: Tensor, seed: int, axes: int) -> Tensor:
    from sklearn.manifold import TSNE  # slow to import

    read = components(rows, FIRST)[0].numpy()
    start = read[:, :axes] / (read[:, 0].std() or 1.0) * 1e-4
    perplexity = min(NEIGHBOURS, (len(rows) - 1) / 3)
    made = TSNE(axes, perplexity=perplexity, init=start, random_state=seed, n_jobs=1).fit_transform(read)
    return torch.from_numpy(made).float()


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
