"""A bandit of three answers of one token, whose best policy is the reference times exp(reward / beta): each method
finds it. Batches hold each answer in proportion to its probability, so that nothing is left to chance.
"""

from collections.abc import Callable, Iterator
from itertools import permutations

import torch
from torch import Tensor

from engine.training.objectives.kinds.dpo import score_dpo
from engine.training.objectives.kinds.grpo import group_advantages, score_grpo
from engine.training.objectives.kinds.ppo import evaluate_rollout, score_ppo
from engine.training.policy.kl import log_probs_of

BETA, DRAWS = 0.5, 3000
REWARDS = torch.tensor([1.0, 0.0, -0.5])
REFERENCE = torch.tensor([0.2, 0.5, 0.3])
BEST = (REFERENCE.log() + REWARDS / BETA).softmax(0)
MASK = torch.ones(DRAWS, 1, dtype=torch.bool)


def draw(policy: Tensor) -> Tensor:
    """Answers (draw,) at evenly spaced quantiles of the policy."""
    return torch.bucketize((torch.arange(DRAWS) + 0.5) / DRAWS, policy.detach().softmax(0).cumsum(0)).clamp(max=2)


def log_probs(logits: Tensor, answers: Tensor) -> Tensor:
    return log_probs_of(logits.expand(len(answers), 1, 3), answers[:, None])


def learn(losses: Callable[[Tensor], Iterator[Tensor]], steps: int = 300, lr: float = 1.0) -> Tensor:
    """The policy after steps along the loss, from the reference."""
    logits = REFERENCE.log().requires_grad_()
    for loss, _ in zip(losses(logits), range(steps), strict=False):
        (gradient,) = torch.autograd.grad(loss, logits)
        with torch.no_grad():
            logits -= lr * gradient
    return logits.detach().softmax(0)


def distance(policy: Tensor, expected: Tensor) -> float:
    """Total variation of two distributions."""
    return float((policy - expected).abs().sum() / 2)


def test_the_reference_is_far_from_the_best() -> None:
    assert distance(REFERENCE, BEST) > 0.3


def test_dpo_finds_the_best_policy() -> None:
    """Each ordered pair of answers counts by the probability that a judge prefers its first (Bradley and Terry)."""
    pairs = torch.tensor(list(permutations(range(3), 2)))
    weights = (REWARDS[pairs[:, 0]] - REWARDS[pairs[:, 1]]).sigmoid()

    def losses(logits: Tensor) -> Iterator[Tensor]:
        reference = REFERENCE.log()[pairs]
        while True:
            now = log_probs(logits, pairs.flatten()).view(-1, 2)
            each = [score_dpo(*now[i : i + 1].T, *reference[i : i + 1].T, BETA)["loss"] for i in range(len(pairs))]
            yield (torch.stack(each) * weights).sum()

    assert distance(learn(losses), BEST) < 0.02


def test_ppo_finds_the_best_policy() -> None:
    value = torch.zeros(1, requires_grad=True)

    def losses(logits: Tensor) -> Iterator[Tensor]:
        while True:
            answers = draw(logits)
            old, reference = log_probs(logits, answers).detach(), log_probs(REFERENCE.log(), answers)
            rollout = evaluate_rollout(old, reference, value.detach().expand_as(old), REWARDS[answers], MASK, BETA)
            for _ in range(2):
                loss = score_ppo(rollout, log_probs(logits, answers), value.expand_as(old), value_weight=1.0)["loss"]
                (gradient,) = torch.autograd.grad(loss, value, retain_graph=True)
                yield loss
                with torch.no_grad():
                    value.sub_(0.3 * gradient)

    assert distance(learn(losses, lr=0.02), BEST) < 0.02
    expected_value = BETA * (REFERENCE * (REWARDS / BETA).exp()).sum().log()  # of the best policy: r - beta KL
    assert abs(value.item() - float(expected_value)) < 0.02


def grpo(weighted_kl: bool) -> Tensor:
    def losses(logits: Tensor) -> Iterator[Tensor]:
        while True:
            answers = draw(logits)
            now, reference = log_probs(logits, answers), log_probs(REFERENCE.log(), answers)
            advantages = group_advantages(REWARDS[answers][None], scale=False)[0]
            yield score_grpo(now, now.detach(), reference, advantages, MASK, BETA, weighted_kl=weighted_kl)["loss"]

    return learn(losses)


def test_grpo_finds_the_best_policy() -> None:
    assert distance(grpo(weighted_kl=True), BEST) < 0.02


def test_grpo_with_k3_alone_finds_the_best_policy_for_the_kl_the_other_way() -> None:
    """Where E[reward] - beta KL(reference || policy) is largest, policy = beta reference / (c - reward)."""
    low, high = REWARDS.max(), REWARDS.max() + 10 * BETA
    for _ in range(60):
        middle = (low + high) / 2
        too_large = (BETA * REFERENCE / (middle - REWARDS)).sum() > 1
        low, high = (middle, high) if too_large else (low, middle)
    policy = grpo(weighted_kl=False)
    assert distance(policy, BETA * REFERENCE / (high - REWARDS)) < 0.02
    assert distance(policy, BEST) > 0.02
