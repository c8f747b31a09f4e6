"""t-SNE: points whose neighbours are those of a table's rows (van der Maaten & Hinton 2008), every pair computed."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from engine.work_limit import check_work

STEPS, EARLY = 1000, 250  # of gradient descent; the first of them exaggerated, with less momentum
EXAGGERATION = 12.0
MOMENTUM = (0.5, 0.8)  # early and after
GAIN_UP, GAIN_DOWN, LEAST_GAIN = 0.2, 0.8, 0.01  # a coordinate's own rate grows while it moves one way
LEAST_RATE = 50.0
HALVINGS = 60  # of the width of a row's Gaussian
BLOCK = 1 << 15  # pairs at a time: a cache holds their numbers, and PyTorch computes them in one thread


def embed(rows: Tensor, start: Tensor, perplexity: float) -> Tensor:
    """Moves `start` (n axes) so that its points lie as `rows` (n width) do; float32.

    The schedule and the rates are scikit-learn's, which takes them from Belkina et al. 2019.
    """
    alike = affinities(rows, perplexity).float()
    points = start.float().clone()
    rate = max(len(rows) / EXAGGERATION / 4, LEAST_RATE)
    moved, gains = torch.zeros_like(points), torch.ones_like(points)
    for step in range(STEPS):
        check_work()
        early = step < EARLY
        slope = gradient(alike, points, EXAGGERATION if early else 1.0)
        gains = torch.where(moved * slope < 0, gains + GAIN_UP, gains * GAIN_DOWN).clamp(min=LEAST_GAIN)
        moved = MOMENTUM[0 if early else 1] * moved - rate * gains * slope
        points += moved
    return points


def affinities(rows: Tensor, perplexity: float) -> Tensor:
    """Joint probabilities of the pairs (n n, float64, sum 1), 0 on the diagonal: Gaussians around each row, as wide as
    gives each `perplexity` neighbours."""
    squared = torch.cdist(rows.double(), rows.double()).square().fill_diagonal_(torch.inf)
    squared -= squared.amin(1, keepdim=True)
    low, high = torch.zeros(len(rows), 1).double(), torch.full((len(rows), 1), torch.inf).double()
    sharp = torch.ones(len(rows), 1).double()
    for _ in range(HALVINGS):
        weights = torch.exp(-squared * sharp)
        whole = weights.sum(1, keepdim=True)
        entropy = whole.log() + sharp * (squared.nan_to_num(posinf=0) * weights).sum(1, keepdim=True) / whole
        wide = entropy > math.log(perplexity)
        low, high = torch.where(wide, sharp, low), torch.where(wide, high, sharp)
        sharp = torch.where(high.isinf(), sharp * 2, (low + high) / 2)
    near = torch.softmax(-squared * sharp, 1)
    return (near + near.T) / (2 * len(rows))


def gradient(alike: Tensor, points: Tensor, exaggeration: float = 1.0) -> Tensor:
    """Gradient of the divergence of the points' Student t from `alike` (n n) times `exaggeration`, by `points` (n
    axes)."""
    rows, count = points.shape
    one, lengths = torch.ones(rows, 1), points.square().sum(1, keepdim=True)
    left, right = torch.cat([-2 * points, lengths + 1, one], 1), torch.cat([points, one, lengths], 1).T.contiguous()
    counted = torch.cat([points, one], 1)  # a product with it also sums
    pull, push, whole = torch.empty_like(counted), torch.empty_like(counted), -float(rows)
    size = max(1, BLOCK // rows)
    for start in range(0, rows, size):
        part = slice(start, start + size)
        close = (left[part] @ right).reciprocal_()
        whole += float(close.sum())
        pull[part] = (alike[part] * close) @ counted
        push[part] = close.square_() @ counted
    both = exaggeration * pull - push / whole
    return 4 * (points * both[:, count:] - both[:, :count])
