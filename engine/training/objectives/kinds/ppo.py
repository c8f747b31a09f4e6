"""Proximal policy optimisation of answers that a reward model scores (Schulman et al. 2017; Ziegler et al. 2019).

Tensors are (batch pos), at each position the token that is written next. `mask` (bool) holds for an answer's tokens,
which stand together; what stands elsewhere, a prompt before or padding after them, is not read.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from engine.checkpoints.adapter_snapshot import VALUE
from engine.data.kinds.preferences import Preferences
from engine.scoring.examples import Counts, Examples
from engine.training.base.adapter import attach_value
from engine.training.measures.preferences import measure_preferences, sample_answer
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.policy.kl import entropy_of, k1, k3, log_probs_of, masked_mean
from engine.training.policy.learner import PolicyLearner, check_answers, next_of
from engine.training.policy.rollouts import SampledAnswers
from engine.training.recipe.preference import DrawnSettings, PolicySettings, PpoSettings
from engine.training.sources.preferences import PreferredAnswers

# --- Answers that were drawn ---


@dataclass(frozen=True)
class Rollout:
    """Answers with what the policy and the value head that drew them gave each token: log-probabilities in nats,
    values, and the advantages and returns that followed.
    """

    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    mask: Tensor


@torch.no_grad()
def evaluate_rollout(
    log_probs: Tensor,
    reference: Tensor,
    values: Tensor,
    scores: Tensor,
    mask: Tensor,
    beta: float,
    gamma: float = 1.0,
    lam: float = 0.95,
) -> Rollout:
    """Advantages are whitened, returns are not. `scores` (batch,) are the rewards of whole answers."""
    values = values.masked_fill(~mask, 0)
    rewards = token_rewards(log_probs, reference, scores, mask, beta)
    advantages = estimate_advantages(rewards, values, mask, gamma, lam)
    return Rollout(log_probs, values, whiten(advantages, mask), advantages + values, mask)


def token_rewards(log_probs: Tensor, reference: Tensor, scores: Tensor, mask: Tensor, beta: float) -> Tensor:
    """Reward of each token: -beta k1 (Ouyang et al. 2022, equation 2), and for an answer's last token the answer's
    score (batch,) too; 0 outside the mask.
    """
    last = mask & ~pad(mask[:, 1:], (0, 1))
    return torch.where(last, scores[:, None], 0) - beta * k1(log_probs, reference).masked_fill(~mask, 0)


def estimate_advantages(rewards: Tensor, values: Tensor, mask: Tensor, gamma: float = 1.0, lam: float = 0.95) -> Tensor:
    """Generalised advantage estimation (Schulman et al. 2016, equation 16) with the value 0 after the last token; 0
    outside the mask.
    """
    advantages = torch.zeros_like(rewards)
    advantage = following = torch.zeros_like(rewards[:, 0])
    for pos in reversed(range(rewards.shape[1])):
        surprise = rewards[:, pos] + gamma * following - values[:, pos]
        advantage = torch.where(mask[:, pos], surprise + gamma * lam * advantage, 0)
        following = torch.where(mask[:, pos], values[:, pos], 0)
        advantages[:, pos] = advantage
    return advantages


def whiten(values: Tensor, mask: Tensor) -> Tensor:
    """Shifts and scales to mean 0 and variance 1 over the mask, all answers together; 0 outside it."""
    centred = (values - masked_mean(values, mask)).masked_fill(~mask, 0)
    return centred * (masked_mean(centred**2, mask) + 1e-8).rsqrt()


# --- Learning from them ---


def score_ppo(
    rollout: Rollout,
    log_probs: Tensor,
    values: Tensor,
    clip: float = 0.2,
    value_clip: float = 0.2,
    value_weight: float = 0.1,
    entropy: Tensor | None = None,
    entropy_weight: float = 0.0,
) -> dict[str, Tensor]:
    """Scalars by name, means over the tokens of all answers, from what the policy that learns gives them now.

    "loss" is "policy_loss" (Schulman et al. 2017, equation 7) + `value_weight` "value_loss" - `entropy_weight`
    "entropy" (equation 9), the value's half the larger of two squared errors, of the value and of the value kept within
    `value_clip` of the old one. "clip_fraction" and "value_clip_fraction" are the shares of tokens whose clipped term
    counts, "approx_kl" is k3 of KL(old policy || policy) in nats. `entropy` is in nats, for each token.
    """
    mask = rollout.mask
    log_ratio = (log_probs - rollout.log_probs).masked_fill(~mask, 0)
    losses, clipped = clip_surrogate(log_ratio, rollout.advantages, clip)
    errors, clipped_errors = value_errors(rollout, values.masked_fill(~mask, 0), value_clip)
    policy_loss = masked_mean(losses, mask)
    value_loss = masked_mean(errors.maximum(clipped_errors), mask) / 2
    scores = {
        "loss": policy_loss + value_weight * value_loss,
        "policy_loss": policy_loss.detach(),
        "value_loss": value_loss.detach(),
        "clip_fraction": masked_mean(clipped.to(losses.dtype), mask),
        "value_clip_fraction": masked_mean((clipped_errors > errors).to(losses.dtype), mask),
        "approx_kl": masked_mean(k3(torch.zeros_like(log_ratio), log_ratio.detach()), mask),
    }
    if entropy is not None:
        mean = masked_mean(entropy, mask)
        scores |= {"loss": scores["loss"] - entropy_weight * mean, "entropy": mean.detach()}
    return scores


def clip_surrogate(log_ratio: Tensor, advantages: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """The negative of the clipped objective (Schulman et al. 2017, equation 7) of each token, and where its clipped
    term counts.
    """
    ratio = log_ratio.exp()
    loss, clipped_loss = -advantages * ratio, -advantages * ratio.clamp(1 - clip, 1 + clip)
    return loss.maximum(clipped_loss), clipped_loss > loss


def value_errors(rollout: Rollout, values: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """Squared errors of the values, and of the values kept within `clip` of the old ones."""
    clipped = rollout.values + (values - rollout.values).clamp(-clip, clip)
    return (values - rollout.returns) ** 2, (clipped - rollout.returns) ** 2


def adapt_beta(beta: float, kl: float, target: float, steps: int, horizon: int) -> float:
    """The next beta (Ziegler et al. 2019, section 2.2), raised where `kl` is over `target` and lowered where it is
    under it, by at most a fifth in `horizon` steps, both in nats. `steps` is how many answers were drawn since the last
    time; steps / horizon is the paper's K.
    """
    error = min(max(kl / target - 1, -0.2), 0.2)
    return beta * (1 + error * steps / horizon)


# --- In a training ---


ROLLOUT = ("log_probs", "values", "advantages", "returns", "mask")


class PpoLearner(PolicyLearner):
    """Proximal policy optimisation, with values from a head of its own on the policy's body."""

    @property
    def usual_weight(self) -> float:
        """Beta of the last step where it adapts, else that of the recipe."""
        return self.state.get("beta", super().usual_weight)

    def read(self, ids: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """The policy's logits, and a value for each position (row pos)."""
        model = self.learning.model
        value = model.get_submodule(VALUE)
        with self.learning.adapter_context():
            last = model.forward_resid(ids, padding=real)
            return model.heads(last, real)[0], value(last.float())[..., 0]

    def prepare(self, answers: SampledAnswers, rewards: Tensor, reference: Tensor, step: int) -> Examples:
        logits, values = self.read(answers.ids, answers.real)
        mask, settings = next_of(answers.answer), self.settings
        log_probs = log_probs_of(logits[:, :-1], next_of(answers.ids), settings.temperature)
        self.see(answers, rewards, log_probs, reference, step)
        if settings.target_kl:
            kl = float(self.seen["kl"])
            self.weight = adapt_beta(self.weight, kl, settings.target_kl, len(answers.ids), settings.horizon)
            self.state["beta"] = self.weight
            self.seen["beta"] = torch.tensor(self.weight, device=mask.device)
        self.seen["entropy"] = masked_mean(entropy_of(logits[:, :-1], settings.temperature), mask)
        rollout = evaluate_rollout(
            log_probs, reference, values[:, :-1], rewards, mask, self.weight, settings.gamma, settings.lam
        )
        return self.examples(answers, **{name: getattr(rollout, name) for name in ROLLOUT})

    def score(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        logits, values = self.read(part.ids, part.inputs["padding"])
        rollout = Rollout(**{name: part.inputs[name] for name in ROLLOUT})
        settings = self.settings
        log_probs = log_probs_of(logits[:, :-1], next_of(part.ids), settings.temperature)
        scores = score_ppo(
            rollout, log_probs, values[:, :-1], settings.clip, settings.value_clip, settings.value_weight
        )
        return self.shared(scores, part.counts, whole)


OBJECTIVE = ObjectiveKind(
    "ppo", 13, {Preferences: PreferredAnswers},
    measure=measure_preferences, sample=sample_answer, unit="the clipped objective, of which less is better",
    learner=PpoLearner, needs=CAUSAL, whole=True, attach=attach_value, least_answers=1, check=check_answers,
    settings=(PolicySettings, DrawnSettings, PpoSettings),
)  # fmt: skip
