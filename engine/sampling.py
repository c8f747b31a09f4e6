"""From logits to the distribution a token is drawn from, every stage kept: temperature, top-k, top-p."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.layers.softmax import softmax

HEAD = 512  # tokens: a nucleus is nearly always smaller


@dataclass(frozen=True)
class Sampling:
    """`temperature` 0 is greedy. `top_k` 0 and `top_p` 1 keep everything.

    top-k keeps the k most probable tokens (Fan et al. 2018); top-p then the fewest of those whose share of
    what is left reaches p (nucleus sampling, Holtzman et al. 2020).
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise ValueError(f"the output temperature must be 0 (greedy) or more, got {self.temperature}.")
        if self.top_k < 0:
            raise ValueError(f"top-k must be 0 (all) or more, got {self.top_k}.")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top-p must be above 0 and at most 1, got {self.top_p}.")


@dataclass(frozen=True)
class Distribution:
    """Every stage from logits to `probabilities`, all shaped like the logits (... vocab).

    `scaled` = logits / temperature; `shares` = softmax(scaled); `in_top_k` and `in_top_p` say what each cut
    kept (the second of what the first had left); `probabilities` are the shares of what is kept, made to sum
    to 1 again.
    """

    logits: Tensor
    scaled: Tensor
    shares: Tensor
    in_top_k: Tensor
    in_top_p: Tensor
    probabilities: Tensor


def distribution(logits: Tensor, sampling: Sampling) -> Distribution:
    """logits: ... vocab. At temperature 0 the most probable token has it all, as in the limit."""
    temperature = sampling.temperature
    scaled = logits if temperature == 1 else logits / temperature if temperature > 0 else limit(logits)
    if not bool(scaled.isfinite().all()):  # so cold that the quotient overflows
        scaled = limit(logits)
    shares = softmax(scaled)
    in_top_k = top_k(scaled, sampling.top_k)
    in_top_p = in_top_k & top_p(among(scaled, in_top_k, shares), sampling.top_p)
    return Distribution(logits, scaled, shares, in_top_k, in_top_p, among(scaled, in_top_p, shares))


def among(scaled: Tensor, kept: Tensor, shares: Tensor) -> Tensor:
    """The softmax over the kept tokens alone; `shares` is what it gives when all are kept."""
    return shares if bool(kept.all()) else softmax(scaled.masked_fill(~kept, float("-inf")))


def limit(logits: Tensor) -> Tensor:
    """What logits / T tends to as T -> 0, up to a shift: 0 for the (first) largest, -inf for the rest."""
    best = logits.argmax(-1, keepdim=True)
    return torch.full_like(logits, float("-inf")).scatter(-1, best, 0.0)


def top_k(scaled: Tensor, k: int) -> Tensor:
    """Bool like `scaled`: the k largest; ties at the edge go to the smaller token id."""
    if k == 0 or k >= scaled.shape[-1]:
        return torch.ones_like(scaled, dtype=torch.bool)
    return largest(scaled, torch.full_like(scaled[..., :1], k, dtype=torch.long), scaled.topk(k).values)


def top_p(shares: Tensor, p: float) -> Tensor:
    """Bool like `shares`: the fewest tokens, most probable first, whose shares reach p, never none."""
    if p >= 1:
        return torch.ones_like(shares, dtype=torch.bool)
    for count in (min(HEAD, shares.shape[-1]), shares.shape[-1]):
        ranked = shares.topk(count).values
        before = ranked.cumsum(-1) - ranked
        if bool((before[..., -1] >= p).all()):
            break  # every nucleus lies within the head: the long tail need not be sorted
    return largest(shares, (before < p).sum(-1, keepdim=True), ranked)


def largest(values: Tensor, count: Tensor, ranked: Tensor) -> Tensor:
    """Bool like `values`: in each row its `count` (... 1) largest, ties at the edge going to the smaller index.

    `ranked` are at least so many of the row's values, largest first.
    """
    edge = ranked.gather(-1, count - 1)
    above, at_edge = values > edge, values == edge
    room = count - above.sum(-1, keepdim=True)
    return above | (at_edge & (at_edge.cumsum(-1) <= room))


def draw(probabilities: Tensor, generator: torch.Generator) -> int:
    """One token id from a 1-D distribution."""
    return int(torch.multinomial(probabilities, 1, generator=generator))
