"""Attention of every query to every key: the measure of all the others."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from engine.attention_variants.cost import FLOAT, Cost


def explicit(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """softmax(q k^T / sqrt(d_head)) v, with the scores and the pattern in memory. All are ... pos d_head."""
    return torch.softmax((q * q.shape[-1] ** -0.5) @ k.mT, -1) @ v


def explicit_cost(length: int, heads: int, d_head: int) -> Cost:
    """2 n^2 h d multiply-adds; scores and pattern are there together: 2 n^2 h floats."""
    pairs, vectors = heads * length * length, heads * length * d_head
    return Cost(2 * pairs * d_head, FLOAT * (pairs + max(pairs, vectors)))


def fused_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The same in tiles, of which only the running maximum and sum of each row are kept (Dao et al. 2022,
    FlashAttention, algorithm 1): batch head pos d_head."""
    return scaled_dot_product_attention(q, k, v)


def fused_cost(length: int, heads: int, d_head: int) -> Cost:
    """2 n^2 h d multiply-adds as before; the result and one number a row: n h (d + 1) floats."""
    return Cost(2 * heads * length * length * d_head, FLOAT * heads * length * (d_head + 1))
