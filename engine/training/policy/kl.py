"""Log-probabilities of tokens, and how far a policy has moved from its reference.

Schulman 2020, "Approximating KL divergence", has the estimators k1 and k3 of KL(policy || reference) from a token
that the policy drew: k1 is unbiased and noisy, k3 is unbiased and never negative.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from engine.scoring.score import AT_ONCE

# --- From logits ---


def log_probs_of(logits: Tensor, ids: Tensor, temperature: float = 1.0) -> Tensor:
    """Log-probability in nats (batch pos) of the token `ids` (batch pos) that follows each position, from logits
    (batch pos vocab) divided by the `temperature`. Padding needs an id of the vocabulary too. Raises ValueError where
    the two do not fit.
    """

    def chosen_ones(rows: Tensor, chosen: Tensor) -> Tensor:
        return heat(rows, temperature).log_softmax(-1).gather(-1, chosen)[:, 0]

    return map_rows(chosen_ones, logits, ids[..., None])


def entropy_of(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Entropy in nats (batch pos) of finite logits (batch pos vocab) divided by the `temperature`."""

    def entropy(rows: Tensor) -> Tensor:
        rows = heat(rows, temperature)
        return -(rows.softmax(-1) * rows.log_softmax(-1)).sum(-1)

    return map_rows(entropy, logits)


def heat(logits: Tensor, temperature: float) -> Tensor:
    return logits if temperature == 1 else logits / temperature


def kl_of(policy: Tensor, reference: Tensor) -> Tensor:
    """KL(policy || reference) in nats (batch pos), summed over the vocabulary, from finite logits of the two, each
    (batch pos vocab). Raises ValueError where the two do not fit.
    """

    def divergence(policy: Tensor, reference: Tensor) -> Tensor:
        log_p = policy.log_softmax(-1)
        return (log_p.exp() * (log_p - reference.log_softmax(-1))).sum(-1)

    return map_rows(divergence, policy, reference)


def map_rows(function: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
    """Calls `function` with a few rows (row vocab) of the tensors (batch pos vocab) at a time, so that without a
    gradient no second tensor as large as the logits is held, and with one a single copy.
    """
    shape, vocab = tensors[0].shape[:-1], tensors[0].shape[-1]
    if any(each.shape[:-1] != shape for each in tensors):
        shapes = " and ".join(str(tuple(each.shape[:-1])) for each in tensors)
        raise ValueError(f"the tensors must have the same batch and positions, got {shapes}; cut them alike.")
    parts = [each.flatten(0, -2).split(max(1, AT_ONCE // vocab)) for each in tensors]
    return torch.cat([function(*rows) for rows in zip(*parts, strict=True)]).view(shape)


# --- From log-probabilities of tokens that the policy drew, each (batch pos) ---


def k1(policy: Tensor, reference: Tensor) -> Tensor:
    return policy - reference


def k3(policy: Tensor, reference: Tensor) -> Tensor:
    difference = reference - policy
    return difference.expm1() - difference


# --- Over the tokens that count ---


def masked_sum(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Sum over all axes or `dim` where `mask` holds. What stands elsewhere, be it infinite, is not read."""
    return values.masked_fill(~mask, 0).sum(dim)


def masked_mean(values: Tensor, mask: Tensor, dim: int | None = None) -> Tensor:
    """Mean as `masked_sum`, 0 where nothing counts."""
    return masked_sum(values, mask, dim) / mask.sum(dim).clamp(min=1)
