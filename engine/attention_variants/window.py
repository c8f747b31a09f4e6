"""Attention within a window along the text, computed in bands: time and memory grow with n w, never with n^2."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from engine.attention_variants.cost import FLOAT, Cost

SHORTEST = 32  # queries computed together, at least: smaller matrix products cost more than they save


def sliding_window(q: Tensor, k: Tensor, v: Tensor, window: int, *, causal: bool = True) -> Tensor:
    """Each query attends to keys fewer than `window` positions away, as `SlidingWindow` says.

    Longformer's sliding window (Beltagy et al. 2020, section 3.1), computed much as its "chunks" are: blocks of
    queries, each with the one band of keys that its windows cover; what a band holds beyond a window is masked.
    All are batch head pos d_head, and so is the result. Raises ValueError for a window below 1.
    """
    batch, _, length, d_head = q.shape
    block, reach, ahead, blocks = _bands(length, window, causal)
    fill = blocks * block - length
    queries = pad(q, (0, 0, 0, fill)).reshape(-1, blocks, block, d_head)
    keys, values = (
        pad(x, (0, 0, reach, fill + ahead)).flatten(0, 1).unfold(1, reach + block + ahead, block).mT for x in (k, v)
    )  # batch*head block band d_head
    allowed = _window_mask(length, window, causal, q.device)
    z = scaled_dot_product_attention(queries, keys, values, attn_mask=allowed)
    return z.reshape(batch, -1, blocks * block, d_head)[:, :, :length]


def window_cost(length: int, heads: int, d_head: int, window: int, *, causal: bool = True) -> Cost:
    """Cost with blocks of b = max(w, 32) queries and bands of s = b + w - 1 keys (b + 2w - 2 where a query sees both
    sides): 2 n h s d multiply-adds, n rounded up to whole blocks; the padded q, k and v, the mask (as booleans and as
    floats, n s of each, one for all heads) and the result.
    """
    block, reach, ahead, blocks = _bands(length, window, causal)
    rows, band = blocks * block, reach + block + ahead
    vectors = heads * d_head * (2 * rows + 2 * (rows + reach + ahead))
    return Cost(2 * rows * heads * band * d_head, FLOAT * (vectors + heads * rows + rows * band) + rows * band)


def _bands(length: int, window: int, causal: bool) -> tuple[int, int, int, int]:
    """Queries in a block, keys of a band before and after it, number of blocks."""
    if window < 1:
        raise ValueError(f"a window must hold at least 1 position, the query's own, got {window}.")
    block, reach = max(window, SHORTEST), window - 1
    return block, reach, 0 if causal else reach, -(-length // block)


def _window_mask(length: int, window: int, causal: bool, device: torch.device) -> Tensor:
    """1 block pos key: in the window, and a position that exists."""
    block, reach, ahead, blocks = _bands(length, window, causal)
    offset = torch.arange(reach + block + ahead, device=device) - reach  # of a key, from its block's first query
    distance = torch.arange(block, device=device)[:, None] - offset
    near = (distance < window) & (distance >= 0 if causal else distance > -window)  # pos key, the same in every block
    key = block * torch.arange(blocks, device=device)[:, None, None] + offset
    return (near & (key >= 0) & (key < length))[None]
