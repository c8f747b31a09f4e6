"""Why scores are divided by the square root of d_head (Vaswani et al. 2017, section 3.2.1)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from engine.model.layers.softmax import softmax

SAMPLES = 4096


class Variance(NamedTuple):
    """Variance of q·k over random q and k whose components have mean 0 and variance 1: as it is, and divided by
    sqrt(d)."""

    plain: float
    divided: float


def random_scores(d: int, keys: int, seed: int = 0) -> Tensor:
    """q·k of one query with each of `keys` keys, key; all components are drawn with mean 0 and variance 1."""
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(d, generator=generator), torch.randn(keys, d, generator=generator)
    return k @ q


def score_variance(d: int, samples: int = SAMPLES, seed: int = 0) -> Variance:
    """Variance of q·k over `samples` pairs: near d, and near 1 once divided by sqrt(d)."""
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, samples, d, generator=generator)
    scores = (q * k).sum(-1)
    return Variance(float(scores.var()), float((scores / d**0.5).var()))


def softmax_gradient(weights: Tensor) -> Tensor:
    """Derivative of each weight by each score, p_i (δ_ij - p_j), key key."""
    return torch.diag(weights) - torch.outer(weights, weights)


def attend(scores: Tensor, divisor: float) -> Tensor:
    """Weights of scores that are divided first, key."""
    return softmax(scores / divisor)
