"""Causal attention of a long text in strips of queries: what stands above the diagonal is 0 and is never computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

LONG = 512  # tokens from which strips pay
STRIP = 128  # rows

Product = Callable[[Tensor, Tensor], Tensor]


def pattern_by_strips(q: Tensor, k: Tensor, scores: Product) -> Tensor:
    """softmax(scores(q, k)) where each query sees itself and what came before, batch head pos key.

    `q` and `k` are batch head pos d_head; heads may share keys.
    """
    batch, heads, length, _ = q.shape
    pattern = q.new_empty(batch, heads, length, length)
    for first, last in strips(length):
        found = scores(q[:, :, first:last], k[:, :, :last])
        later = torch.ones(last - first, last - first, dtype=torch.bool, device=q.device).triu_(1)
        found[..., first:].masked_fill_(later, float("-inf"))
        pattern[:, :, first:last, :last] = found.softmax(-1)
        pattern[:, :, first:last, last:] = 0
    return pattern


def mix_by_strips(pattern: Tensor, v: Tensor, mixture: Product) -> Tensor:
    """pattern v, batch head pos d_head, of a pattern that is 0 above its diagonal; `mixture` multiplies one strip."""
    length = pattern.shape[-1]
    parts = [mixture(pattern[:, :, first:last, :last], v[:, :, :last]) for first, last in strips(length)]
    return torch.cat(parts, 2)


def strips(length: int) -> Iterator[tuple[int, int]]:
    for first in range(0, length, STRIP):
        yield first, min(first + STRIP, length)
