"""What two runs say at the same places, where both choose among the same tokens or classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.effects import log_probabilities, questions
from engine.model.config import Link


@dataclass(frozen=True)
class Predictions:
    """`ids`, `first` and `second` are place candidate: probabilities (at temperature 1) in both runs, the candidates
    by the greater of the two. `kl` (place) is KL(first || second) in bits, `variation` (place) half the sum of all
    differences."""

    ids: Tensor
    first: Tensor
    second: Tensor
    kl: Tensor
    variation: Tensor


def predictions(
    first: Tensor, second: Tensor, places: Sequence[tuple[int, int]], count: int, link: Link = "softmax"
) -> Predictions:
    """Compares logits of two runs, pos vocab (or class) each, at pairs of rows. Raises ValueError for unlike choices.

    With the link "logistic", and of a single logit, a class holds or does not, as in `engine.analysis.effects.shift`.
    """
    if first.shape[-1] != second.shape[-1]:
        raise ValueError(f"both runs must choose among as many, got {first.shape[-1]} and {second.shape[-1]}.")
    listed = min(count, first.shape[-1])
    rows = [one_place(first[i], second[j], listed, link) for i, j in places]
    ids, p, q, kl, variation = zip(*rows, strict=True) if rows else ((),) * 5
    whole = [torch.stack(values) if values else first.new_zeros(0, listed) for values in (ids, p, q)]
    return Predictions(whole[0], whole[1], whole[2], torch.tensor(kl), torch.tensor(variation))


def one_place(first: Tensor, second: Tensor, count: int, link: Link) -> tuple[Tensor, Tensor, Tensor, float, float]:
    log_p, log_q = log_probabilities(first, link), log_probabilities(second, link)
    p, q = log_p.exp(), log_q.exp()
    ids = torch.maximum(p, q)[: len(first)].topk(count).indices
    kl = torch.where(p > 0, p * (log_p - log_q), 0.0).sum().clamp(min=0) / math.log(2)
    return ids, p[ids].float(), q[ids].float(), float(kl), float((q - p).abs().sum() / 2) / questions(len(first), link)
