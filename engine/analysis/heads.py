"""What a head attends to, in numbers measured on one text."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.trace import Trace


@dataclass(frozen=True)
class HeadScores:
    """Each is layer head, averaged over query positions 1.. (0 has no choice); shares of attention are in [0, 1]."""

    previous: Tensor  # to the token before
    first: Tensor  # to the first token, the attention sink of Xiao et al. 2024
    own: Tensor  # to itself
    induction: Tensor  # to what followed the same token before, averaged over repeated tokens only
    entropy: Tensor  # bits, not a share


def head_scores(trace: Trace, side: str = "") -> HeadScores:
    """Of the self-attention of the first text of the batch; `side` picks "encoder" or "decoder" of two stacks.

    NaN where no query had a choice: one token only, nothing repeated.
    """
    pattern = trace.stack(f"{side}.attn.pattern" if side else "attn.pattern")[:, 0]  # layer head pos key
    ids = trace.target if side == "decoder" and trace.target is not None else trace.ids
    return HeadScores(
        previous=pattern.diagonal(-1, -2, -1).mean(-1),
        first=pattern[..., 1:, 0].mean(-1),
        own=pattern.diagonal(0, -2, -1)[..., 1:].mean(-1),
        induction=induction(pattern, ids[0]) if ids.dim() == 2 else torch.full(pattern.shape[:2], math.nan),
        entropy=bits(pattern)[..., 1:].mean(-1),
    )


@dataclass(frozen=True)
class CrossScores:
    """Each is layer head, averaged over the positions of the target."""

    strongest: Tensor  # the largest share that a position gives to one token of the source
    entropy: Tensor  # bits


def cross_scores(trace: Trace) -> CrossScores:
    """Of the cross-attention of the first text of the batch."""
    pattern = trace.stack("cross_attn.pattern")[:, 0]  # layer head pos key
    return CrossScores(strongest=pattern.amax(-1).mean(-1), entropy=bits(pattern).mean(-1))


def bits(pattern: Tensor) -> Tensor:
    """The entropy of each row, ... pos."""
    return -torch.special.xlogy(pattern, pattern).sum(-1) / math.log(2)


def induction(pattern: Tensor, ids: Tensor) -> Tensor:
    """The mean share that a repeated token gives to the tokens that followed its earlier occurrences.

    `pattern` is ... pos key, `ids` pos; the result has the leading axes of `pattern` (Olsson et al. 2022, "In-context
    learning and induction heads"). NaN where no token is repeated.
    """
    same = (ids[:, None] == ids).tril(-1)  # pos key: the same token, earlier
    repeated = same.any(-1)
    followed = same.roll(1, dims=-1)  # the key after it; nothing wraps, for a row's last key is never earlier
    return (pattern * followed).sum(-1)[..., repeated].mean(-1)
