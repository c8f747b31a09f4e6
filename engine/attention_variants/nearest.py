"""Attention to the k nearest states only, all heads of all layers searching one index (Unlimiformer).

Bertsch et al. 2023, section 3.2: a head's score against a state h is

    q . k  =  (x W_Q + b_Q) . (h W_K + b_K)  =  ((x W_Q + b_Q) W_K^T) . h  +  (x W_Q + b_Q) . b_K

so that the query, folded through the head's own W_K, searches the raw states h, which know of no head. An index of
keys would be one for every head of every layer.

The last term is a constant of the query: it moves all of its scores alike, changes neither their order nor their
softmax, and is left out. It would have to be added back where the softmax holds an entry that has not
got it, such as a learned sink, or where something that is not linear stands before it, such as soft-capping. A
rotation of queries and keys by their positions (RoPE) cannot be folded: it stands between W_Q and W_K and differs
from key to key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.attention_variants.cost import FLOAT, INDEX, Cost
from engine.attention_variants.heads import Heads
from engine.model.layers.softmax import softmax

Found = tuple[Tensor, Tensor]  # scores and keys, both query k, the best first; key -1 where there was none, score -inf
Search = Callable[[Tensor, int], Found]  # folded queries (query d_model) and k

QUERIES, KEYS = 1024, 4096  # scored at once: 16 MiB
GATHERED = 256  # queries whose k states are fetched at once


@dataclass(frozen=True)
class Nearest:
    """`z`: head pos d_head; `keys` and `pattern`: head pos k, the states used and what each got; rows of `pattern` sum
    to 1, or are all zero where nothing was found (keys -1)."""

    z: Tensor
    keys: Tensor
    pattern: Tensor

    def dense(self, length: int) -> Tensor:
        """The pattern as head pos key, zero wherever a head did not look."""
        full = self.pattern.new_zeros(*self.keys.shape[:-1], length + 1)
        return full.scatter_(-1, self.keys % (length + 1), self.pattern)[..., :length]  # -1 goes to the end, cut off


def fold(q: Tensor, w_k: Tensor) -> Tensor:
    """q W_K^T: head pos d_head, head d_head d_model -> head pos d_model."""
    return q @ w_k


def exact(queries: Tensor, states: Tensor, k: int, visible: Tensor | None = None) -> Found:
    """The k states with the largest inner products: a tile of scores at a time, the best so far carried along.

    `queries`: query d_model; `states`: key d_model; `visible`, where given, says of each query how many of the first
    states it may see (a causal model's pos + 1).
    """
    k = min(k, len(states))
    scores = queries.new_empty(len(queries), k)
    keys = torch.empty(len(queries), k, dtype=torch.int64, device=queries.device)
    for start in range(0, len(queries), QUERIES):
        rows = slice(start, start + QUERIES)
        scores[rows], keys[rows] = _tiles(queries[rows], states, k, None if visible is None else visible[rows])
    return scores, keys.masked_fill_(scores == -torch.inf, -1)


def _tiles(queries: Tensor, states: Tensor, k: int, visible: Tensor | None) -> Found:
    best, keys = queries.new_empty(len(queries), 0), torch.empty(len(queries), 0, dtype=torch.int64)
    for start in range(0, len(states), KEYS):
        scores = queries @ states[start : start + KEYS].T
        if visible is not None:
            scores.masked_fill_(torch.arange(start, start + scores.shape[1]) >= visible[:, None], -torch.inf)
        top, at = scores.topk(min(k, scores.shape[1]))
        best, keys = torch.cat([best, top], -1), torch.cat([keys, at + start], -1)
        best, chosen = best.topk(min(k, best.shape[1]))
        keys = keys.gather(-1, chosen)
    return best, keys


def nearest_attention(q: Tensor, states: Tensor, heads: Heads, k: int, search: Search | None = None) -> Nearest:
    """Attention of `q` (head pos d_head) to its k nearest of `states` (key d_model); exact search unless given.

    The scores of the states found are always computed from the states themselves, so that an approximate search
    changes which are used and nothing else. Raises ValueError for k below 1.
    """
    if k < 1:
        raise ValueError(f"attention needs at least 1 nearest state, got k = {k}.")
    folded = fold(q, heads.w_k).flatten(0, 1)
    find = search or (lambda queries, count: exact(queries, states, count))
    keys = find(folded, k)[1]
    pattern, mixed = _attend(folded, keys, states, q.shape[-1] ** -0.5)
    pattern, mixed = (x.unflatten(0, q.shape[:2]) for x in (pattern, mixed))
    z = mixed @ heads.w_v.mT  # the mean of values is the value of the mean
    z.addcmul_(pattern.sum(-1, keepdim=True), heads.b_v[:, None])
    return Nearest(z, keys.unflatten(0, q.shape[:2]), pattern)


def _attend(folded: Tensor, keys: Tensor, states: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    """The pattern over the states found, and the states mixed by it: query k, query d_model."""
    pattern, mixed = folded.new_empty(keys.shape), torch.empty_like(folded)
    for start in range(0, len(keys), GATHERED):
        rows = slice(start, start + GATHERED)
        pattern[rows], mixed[rows] = _attend_to(states[keys[rows]], folded[rows], keys[rows] >= 0, scale)
    return pattern, mixed


def _attend_to(near: Tensor, folded: Tensor, found: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    scores = scale * (near @ folded[..., None]).squeeze(-1)  # query k
    pattern = softmax(scores.masked_fill_(~found, -torch.inf))
    return pattern, (pattern[:, None] @ near).squeeze(1)


def attend_cost(length: int, heads: int, d_head: int, d_model: int, k: int) -> Cost:
    """n h (2 d_head + 2 k) d_model multiply-adds: in through W_K, k scores, k states mixed, out through W_V. Folded
    queries, mixed states, the pattern, and the k states of one batch of queries, or the result where that is more."""
    rows = length * heads
    gathered = min(rows, GATHERED) * k * d_model
    held = FLOAT * (2 * rows * d_model + rows * k + max(gathered, rows * (d_head + 1))) + INDEX * rows * k
    return Cost(rows * (2 * d_head + 2 * k) * d_model, held)


def exact_cost(length: int, keys: int, heads: int, d_model: int, k: int) -> Cost:
    """n h keys d_model multiply-adds; one tile of scores at a time, and k scores and keys a query."""
    rows, k = length * heads, min(k, keys)
    tile = min(rows, QUERIES) * min(keys, KEYS)
    return Cost(rows * keys * d_model, FLOAT * (tile + rows * k) + INDEX * rows * k)
