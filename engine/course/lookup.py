"""Attention of one query as a soft lookup: scores with every key, their softmax, and the weighted sum of the values."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from engine.model.layers.softmax import softmax


class Lookup(NamedTuple):
    """`scores` and `weights` by key, and `out`, of the size of a value."""

    scores: Tensor
    weights: Tensor
    out: Tensor


def look_up(query: Tensor, keys: Tensor, values: Tensor) -> Lookup:
    """Attention of a `query` (d) over `keys` (key d) and their `values` (key d_value)."""
    scores = keys @ query / query.shape[-1] ** 0.5
    weights = softmax(scores)
    return Lookup(scores, weights, weights @ values)
