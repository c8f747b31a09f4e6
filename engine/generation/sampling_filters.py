"""Which tokens may be drawn: top-k, top-p, min-p and typical, each with the edges that transformers gives it.

All take `scores`, ... vocab, -inf where an earlier cut left a token out, and return a bool of the same shape. A token
that an earlier cut left out may be True again: the cuts are taken together with `&`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.layers.softmax import softmax

HEAD = 512  # tokens: a nucleus is nearly always smaller
CLOSE = 1e-5  # to p: here the order in which float32 is added up may decide


def keep_all(scores: Tensor) -> Tensor:
    return torch.ones_like(scores, dtype=torch.bool)


def top_k(scores: Tensor, k: int) -> Tensor:
    """The k largest (Fan et al. 2018), and all that equal the last of them. 0 keeps everything."""
    if k == 0 or k >= scores.shape[-1]:
        return keep_all(scores)
    return scores >= scores.topk(k).values[..., -1:]


def top_p(scores: Tensor, p: float) -> Tensor:
    """The fewest, most probable first, whose shares reach p (Holtzman et al. 2020), never none. 1 keeps everything."""
    if p >= 1:
        return keep_all(scores)
    rows = scores.reshape(-1, scores.shape[-1])
    kept, clear = nucleus(rows, p)
    if not bool(clear.all()):
        kept[~clear] = nucleus_from_below(rows[~clear], p)
    return kept.view(scores.shape)


def nucleus(scores: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """row vocab, and row: whether it is clear what is kept. The long tail is not sorted."""
    ranked = scores.topk(min(HEAD, scores.shape[-1]))
    share = softmax(scores).gather(-1, ranked.indices)
    before = share.cumsum(-1) - share
    count = (before < p).sum(-1, keepdim=True)
    kept = scores >= ranked.values.gather(-1, count - 1)
    reached = share.shape[-1] == scores.shape[-1] or before[:, -1] >= p
    untied = kept.sum(-1) == count[:, 0]
    return kept, untied & reached & ((before - p).abs() > CLOSE).all(-1)


def nucleus_from_below(scores: Tensor, p: float) -> Tensor:
    """The same by leaving out the least probable while their sum is at most 1 - p; sorting decides between equals."""
    ranked = torch.sort(scores)
    out = ranked.values.softmax(-1).cumsum(-1) <= 1 - p
    out[..., -1] = False
    return ~out.scatter(-1, ranked.indices, out)


def min_p(scores: Tensor, p: float) -> Tensor:
    """Keeps tokens at least `p` times as probable as the most probable (Nguyen et al. 2024). 0 keeps everything."""
    if p == 0:
        return keep_all(scores)
    shares = softmax(scores)
    best, kept = shares.argmax(-1, keepdim=True), shares >= p * shares.amax(-1, keepdim=True)
    return kept.scatter(-1, best, True)


def typical(scores: Tensor, mass: float) -> Tensor:
    """Keeps tokens whose surprise is nearest to the expected one, the entropy, until their shares reach `mass` (Meister
    et al. 2022, "Locally typical sampling"), and all as near as the last of them. 1 keeps everything.
    """
    if mass >= 1:
        return keep_all(scores)
    logs = scores.log_softmax(-1)
    expected = -(logs * logs.exp()).nansum(-1, keepdim=True)
    ranked = torch.sort((-logs - expected).abs())
    reached = scores.gather(-1, ranked.indices).softmax(-1).cumsum(-1)
    last = (reached < mass).sum(-1, keepdim=True).clamp(max=scores.shape[-1] - 1)
    out = ranked.values > ranked.values.gather(-1, last)
    out[..., 0] = False
    return ~out.scatter(-1, ranked.indices, out)
