"""Lloyd's algorithm on many sets of points at once."""

from __future__ import annotations

import torch
from torch import Tensor

ROWS = 4096  # points compared with all centroids at once


def kmeans(points: Tensor, clusters: int, seed: int, iterations: int = 12) -> Tensor:
    """set point d -> centroids, set cluster d (Lloyd 1982), begun at points drawn without repetition.

    A cluster that loses all its points starts again at one of those farthest from their centroids. Raises ValueError
    for more clusters than points.
    """
    sets, count, _ = points.shape
    if not 1 <= clusters <= count:
        raise ValueError(f"clusters must be in 1..{count}, the number of points, got {clusters}.")
    chance = torch.Generator().manual_seed(seed)
    first = torch.stack([torch.randperm(count, generator=chance)[:clusters] for _ in range(sets)])
    every = torch.arange(sets)[:, None]
    centroids = points[every, first]
    for _ in range(iterations):
        nearest = assign(points, centroids)
        sizes = points.new_zeros(sets, clusters).scatter_add_(1, nearest, torch.ones_like(points[..., 0]))
        sums = torch.zeros_like(centroids).index_put_((every, nearest), points, accumulate=True)
        distance = (points - centroids[every, nearest]).square().sum(-1)
        empty = sizes == 0
        far = distance.topk(clusters).indices.gather(1, (empty.cumsum(1) - 1).clamp(min=0))
        centroids = torch.where(empty[..., None], points[every, far], sums / sizes.clamp(min=1)[..., None])
    return centroids


def assign(points: Tensor, centroids: Tensor) -> Tensor:
    """The nearest centroid of each point, set point: the least ||x - c||^2, hence the largest x . c - ||c||^2 / 2."""
    half = centroids.square().sum(-1)[:, None] / 2
    parts = [torch.baddbmm(half, rows, centroids.mT, beta=-1).argmax(-1) for rows in points.split(ROWS, 1)]
    return torch.cat(parts, 1)
