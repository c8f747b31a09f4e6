"""The coordinates in which states are quantized: those in which an error counts alike in every direction."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

FLOOR = 1e-3  # of the mean: the least weight of a direction, so that none is lost that some later query might take


@dataclass(frozen=True)
class Metric:
    """`states @ to_state` and `queries @ to_query` have the same inner products as before: both d_model d_model."""

    to_state: Tensor
    to_query: Tensor


def metric(states: Tensor, queries: Tensor | None, subspaces: int) -> Metric:
    """Learns the metric from states, key d_model, and queries, query d_model, where there are any.

    An approximation h^ of a state h costs a query the error q . (h - h^), whose mean square over queries is
    (h - h^)^T S (h - h^) with S = E[q q^T]. States are therefore stretched by S^1/2 and queries by S^-1/2: there the
    nearest centroid by distance is the one with the least error of inner products (Guo et al. 2016, "Quantization based
    fast inner product search", section 4.2). Then both are turned to the principal axes of the stretched states, and
    these dealt to the sub-spaces so that the products of their variances come out alike (Ge et al. 2013, "Optimized
    product quantization", section 3.2.2, eigenvalue allocation): no sub-space has all there is to say.
    """
    spread = torch.eye(states.shape[1]) if queries is None else queries.T @ queries / len(queries)
    weights, axes = torch.linalg.eigh(spread)
    stretch = (weights.clamp(min=0) + FLOOR * weights.mean()).sqrt()
    stretched = (states - states.mean(0)) @ (axes * stretch)
    variance, turn = torch.linalg.eigh(stretched.T @ stretched)
    turn = turn[:, allocate(variance, subspaces)]
    return Metric(axes * stretch @ turn, axes / stretch @ turn)


def allocate(variance: Tensor, subspaces: int) -> list[int]:
    """The directions, one sub-space after another: from the largest on, each goes where the product is least so far."""
    size = len(variance) // subspaces
    groups: list[list[int]] = [[] for _ in range(subspaces)]
    products = [0.0] * subspaces  # logarithms
    scaled = (variance / variance.max()).clamp(min=1e-9).log() - torch.tensor(1e-9).log()  # not below 0
    for direction in variance.argsort(descending=True).tolist():
        place = min((i for i in range(subspaces) if len(groups[i]) < size), key=products.__getitem__)
        groups[place].append(direction)
        products[place] += float(scaled[direction])
    return [direction for group in groups for direction in group]
