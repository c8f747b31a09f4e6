"""What a head attends to, in numbers measured on one text."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.trace import Trace


@dataclass(frozen=True)
class HeadScores:
    """Each is layer head. Attention shares in [0, 1], averaged over query positions 1.. (position 0 has no choice)."""

    previous: Tensor  # to the token before
    first: Tensor  # to the first token, the attention sink of Xiao et al. 2024
    own: Tensor  # to itself
    entropy: Tensor  # bits, averaged over all query positions


def head_scores(trace: Trace) -> HeadScores:
    """Of the first text of the batch; with a single token the three shares are NaN, since no query had a choice."""
    pattern = trace.stack("attn.pattern")[:, 0]  # layer head pos key
    return HeadScores(
        previous=pattern.diagonal(-1, -2, -1).mean(-1),
        first=pattern[..., 1:, 0].mean(-1),
        own=pattern.diagonal(0, -2, -1)[..., 1:].mean(-1),
        entropy=-torch.special.xlogy(pattern, pattern).sum(-1).mean(-1) / torch.log(torch.tensor(2.0)),
    )


def induction(pattern: Tensor, ids: Tensor) -> Tensor:
    """head: the mean share that a repeated token gives to the token after its last earlier occurrence.

    `pattern` is head pos key, `ids` pos (Olsson et al. 2022, "In-context learning and induction heads"). NaN without repeats.
    """
    earlier: dict[int, int] = {}
    pairs = []
    for pos, token in enumerate(ids.tolist()):
        if token in earlier:
            pairs.append((pos, earlier[token] + 1))
        earlier[token] = pos
    if not pairs:
        return torch.full((pattern.shape[0],), float("nan"))
    rows, keys = torch.tensor(pairs).T
    return pattern[:, rows, keys].mean(-1)
