"""An average of what came before: by a loop, a matrix, a softmax over a mask, and weights made from the data."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.layers.mask import Causal
from engine.model.layers.softmax import softmax


def running_sums(x: Tensor) -> Tensor:
    """Sum of each row of `x` (pos d) and those before it, pos d."""
    triangle = torch.tril(torch.ones(len(x), len(x)))
    return triangle @ x


def average_by_loop(x: Tensor) -> Tensor:
    """Mean of each row of `x` (pos d) and those before it, pos d."""
    out = torch.zeros_like(x)
    for pos in range(len(x)):
        for key in range(pos + 1):
            out[pos] += x[key] / (pos + 1)
    return out


def triangular_weights(length: int) -> Tensor:
    """Lower-triangular rows that sum to 1, pos key."""
    triangle = torch.tril(torch.ones(length, length))
    return triangle / triangle.sum(-1, keepdim=True)


def softmax_weights(scores: Tensor) -> Tensor:
    """Softmax of `scores` (pos key) where a later key is -inf, pos key. Scores that are all 0 give equal shares."""
    positions = torch.arange(len(scores))
    allowed = Causal().allows(positions, positions)
    return softmax(scores.masked_fill(~allowed, float("-inf")))


def scores_of(x: Tensor) -> Tensor:
    """Scores of a row of `x` (pos d) for every row: their dot product over the square root of d, pos key."""
    return x @ x.T / x.shape[-1] ** 0.5


def weighted_average(weights: Tensor, x: Tensor) -> Tensor:
    """`weights` (pos key) times `x` (key d), pos d."""
    return weights @ x
