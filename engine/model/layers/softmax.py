"""Softmax with a temperature; attention and sampling both call this one."""

from __future__ import annotations

import torch
from torch import Tensor


def softmax(
    scores: Tensor,
    temperature: float | Tensor | None = None,
    may_have_empty_rows: bool = True,
    sink: Tensor | None = None,
) -> Tensor:
    """exp(s_i / T) / sum_j exp(s_j / T) over the last axis; None is T = 1 and costs nothing.

    `temperature` broadcasts against `scores` (heads x 1 x 1 gives each head its own). A row in which nothing
    is allowed (all -inf) becomes all zeros rather than NaN; without `may_have_empty_rows` there is none. `sink` (head,
    of scores batch head pos key) is one more score of each row, whose share is left out of the result.
    """
    if sink is not None:
        scores = torch.cat([scores, sink[:, None, None].to(scores.dtype).expand(*scores.shape[:-1], 1)], dim=-1)
    if temperature is not None:
        scores = scores / temperature
    shares = torch.softmax(scores, dim=-1)
    shares = shares if sink is None else shares[..., :-1]
    return shares.nan_to_num(0.0) if may_have_empty_rows else shares  # a row is NaN whole or not at all
