"""Odds ratio preference optimisation: learning the chosen answers and leaving the others, without a reference (Hong et
al. 2024)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from engine.data.kinds.preferences import Preferences
from engine.scoring.examples import Examples
from engine.training.measures.preferences import measure_preferences, sample_answer
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.policy.kl import masked_mean
from engine.training.policy.learner import PairLearner, next_of, texts_of
from engine.training.recipe.preference import PolicySettings
from engine.training.sources.preferences import PreferredAnswers


def score_orpo(chosen: Tensor, rejected: Tensor, weight: float) -> dict[str, Tensor]:
    """Scalars by name, from the log-probabilities in nats of the two answers of each pair, each the mean over its
    tokens (pair,).

    The loss is equation 6: that of the chosen answer, "chosen_loss" in nats a token, and `weight` times -log sigmoid of
    the log odds ratio (equation 7), where the odds of p are p / (1 - p) (equation 4). "margin" is the mean of that
    logarithm, "accuracy" the share of pairs of which the chosen answer has the larger odds.
    """
    log_odds = (chosen - log1mexp(chosen)) - (rejected - log1mexp(rejected))
    own = -chosen.mean()
    return {
        "loss": own - weight * logsigmoid(log_odds).mean(),
        "accuracy": (log_odds > 0).to(log_odds.dtype).mean(),
        "margin": log_odds.detach().mean(),
        "chosen_loss": own.detach(),
    }


def log1mexp(x: Tensor) -> Tensor:
    """log(1 - exp(x)) for x < 0, by whichever form loses no digits."""
    return torch.where(x < -math.log(2), torch.log1p(-x.exp()), torch.log(-torch.expm1(x)))


class OrpoLearner(PairLearner):
    """The base is looked at only for the KL of the answers that are shown."""

    def compare(self, part: Examples) -> dict[str, Tensor]:
        ids, real, answer = texts_of(part)
        means = masked_mean(self.log_probs(self.policy, ids, real), next_of(answer), 1)
        return score_orpo(means[0::2], means[1::2], self.weight)


OBJECTIVE = ObjectiveKind(
    "orpo", 16, {Preferences: PreferredAnswers},
    measure=measure_preferences, sample=sample_answer, unit="nats a token of the chosen answers, and the odds ratio's",
    learner=OrpoLearner, needs=CAUSAL, whole=True, settings=(PolicySettings,),
    beta="What the odds of the two answers count beside the chosen one’s own loss.",
)  # fmt: skip
