"""From answers to a policy: one choice among a few words, a reward for each, and the price of leaving the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from engine.runtime import library
from engine.tokenizers.encoding import Encoding


@dataclass(frozen=True)
class LearnedPolicy:
    """A policy (word) that was reached step by step, and what was maximised, or the loss, before each step and after
    the last."""

    policy: Tensor
    values: list[float]


def likely_words(name: str, ids: Sequence[int], count: int) -> tuple[list[str], list[float]]:
    """The `count` likeliest next tokens of a text, and their shares among all."""
    checkpoint = library.checkpoint(name)
    logits = library.traces.trace(name, Encoding.from_ids(ids))["logits"][0, -1]
    top = logits.softmax(-1).topk(count)
    assert checkpoint.tokenizer is not None
    return [checkpoint.tokenizer.piece(id) for id in top.indices.tolist()], top.values.tolist()


def best_policy(reference: Sequence[float], rewards: Sequence[float], price: float) -> Tensor:
    """The policy with the largest mean reward less `price` times its KL from the reference: proportional to
    reference * exp(reward / price) (Rafailov et al. 2023, section 4, equation 4)."""
    return (torch.tensor(reference).log() + torch.tensor(rewards) / price).softmax(-1)


def mean_reward(policy: Tensor, rewards: Sequence[float]) -> Tensor:
    return (policy * torch.tensor(rewards)).sum()


def divergence(policy: Tensor, reference: Sequence[float]) -> Tensor:
    """KL(policy || reference), in nats."""
    return torch.xlogy(policy, policy / torch.tensor(reference)).sum()


def climb(reference: Sequence[float], rewards: Sequence[float], price: float, steps: int, rate: float) -> LearnedPolicy:
    """Gradient ascent on the mean reward less the price of leaving the reference: what PPO does with samples, here
    with the exact mean over all words (Ziegler et al. 2019, section 2)."""
    scores = torch.tensor(reference).log().requires_grad_()
    values = list[float]()
    for step in range(steps + 1):
        policy = scores.softmax(-1)
        value = mean_reward(policy, rewards) - price * divergence(policy, reference)
        values.append(float(value.detach()))
        if step < steps:
            (gradient,) = torch.autograd.grad(value, scores)
            scores = (scores.detach() + rate * gradient).requires_grad_()
    return LearnedPolicy(scores.detach().softmax(-1), values)


def preference(rewards: Sequence[float], one: int, other: int) -> float:
    """Probability that `one` is said to be better than `other` (Bradley and Terry 1952)."""
    return float(torch.sigmoid(torch.tensor(rewards[one] - rewards[other])))


def learn_from_pairs(
    reference: Sequence[float], rewards: Sequence[float], price: float, steps: int, rate: float
) -> LearnedPolicy:
    """Gradient descent on DPO's loss of all pairs of words, each preferred as often as its reward says; no reward is
    asked for (Rafailov et al. 2023, equation 7)."""
    log_reference = torch.tensor(reference).log()
    pairs = list(combinations(range(len(reference)), 2))
    ones, others = (torch.tensor(side) for side in zip(*pairs, strict=True))
    wins = torch.tensor([preference(rewards, one, other) for one, other in pairs])
    scores = log_reference.clone().requires_grad_()
    values = list[float]()
    for step in range(steps + 1):
        margin = price * (scores.log_softmax(-1) - log_reference)
        gap = margin[ones] - margin[others]
        loss = -(wins * logsigmoid(gap) + (1 - wins) * logsigmoid(-gap)).mean()
        values.append(float(loss.detach()))
        if step < steps:
            (gradient,) = torch.autograd.grad(loss, scores)
            scores = (scores.detach() - rate * gradient).requires_grad_()
    return LearnedPolicy(scores.detach().softmax(-1), values)
