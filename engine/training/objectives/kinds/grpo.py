"""Group relative policy optimisation: an answer is as good as it is better than the others to its prompt, and no value
head is needed (Shao et al. 2024).
"""

from __future__ import annotations

from torch import Tensor

from engine.data.kinds.preferences import Preferences
from engine.scoring.examples import Counts, Examples
from engine.training.measures.preferences import measure_preferences, sample_answer
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.objectives.kinds.ppo import clip_surrogate
from engine.training.policy.kl import entropy_of, k3, log_probs_of, masked_mean
from engine.training.policy.learner import PolicyLearner, check_answers, next_of
from engine.training.policy.rollouts import SampledAnswers
from engine.training.recipe.preference import DrawnSettings, GrpoSettings, PolicySettings
from engine.training.sources.preferences import PreferredAnswers


def group_advantages(rewards: Tensor, scale: bool = True) -> Tensor:
    """Advantages (prompt answer) of rewards (prompt answer): each less the mean of its group, divided by the group's
    sample standard deviation + 0.0001 (Shao et al. 2024, section 4.1.2). Without `scale` there is no division, which
    would weigh prompts by how alike their answers are (Liu et al. 2025, section 3).

    Raises ValueError for a group of one.
    """
    if rewards.shape[1] < 2:
        raise ValueError(f"each prompt must have two or more answers to compare, got {rewards.shape[1]}; draw more.")
    centred = rewards - rewards.mean(1, keepdim=True)
    return centred / (rewards.std(1, keepdim=True) + 1e-4) if scale else centred


def score_grpo(
    policy: Tensor,
    old: Tensor,
    reference: Tensor,
    advantages: Tensor,
    mask: Tensor,
    beta: float,
    clip: float = 0.2,
    weighted_kl: bool = True,
) -> dict[str, Tensor]:
    """Scalars by name, from the log-probabilities in nats (answer pos) of the answers' tokens under the policy that
    learns, the one that drew them and the reference. `mask` (answer pos) holds for tokens, the `advantages` (answer,)
    are of whole answers.

    The loss is the negative of equation 3 (Shao et al. 2024): the clipped objective less beta k3 (equation 4), in the
    mean over each answer's tokens, then over the answers. Over answers that the policy itself drew, k3 has the gradient
    of KL(reference || policy); multiplied by policy / old, with `weighted_kl`, it has that of KL(policy || reference)
    (DeepSeek-V3.2 2025, section 3.1, equation 7), of which the optimum for answers of one token is the reference times
    exp(reward / beta). "kl" is its mean over all tokens, "clip_fraction" the share of them whose clipped term counts.
    """
    log_ratio = (policy - old).masked_fill(~mask, 0)
    losses, clipped = clip_surrogate(log_ratio, advantages[:, None], clip)
    kl = k3(policy.masked_fill(~mask, 0), reference)
    if weighted_kl:
        kl = kl * log_ratio.exp()
    return {
        "loss": masked_mean(losses + beta * kl, mask, 1).mean(),
        "kl": masked_mean(kl.detach(), mask),
        "clip_fraction": masked_mean(clipped.to(losses.dtype), mask),
    }


class GrpoLearner(PolicyLearner):
    """Group relative policy optimisation: each answer beside the others to its prompt."""

    def prepare(self, answers: SampledAnswers, rewards: Tensor, reference: Tensor, step: int) -> Examples:
        logits = self.policy(answers.ids, padding=answers.real)
        temperature = self.settings.temperature
        log_probs = log_probs_of(logits[:, :-1], next_of(answers.ids), temperature)
        self.see(answers, rewards, log_probs, reference, step)
        self.seen["entropy"] = masked_mean(entropy_of(logits[:, :-1], temperature), next_of(answers.answer))
        advantages = group_advantages(rewards.view(-1, self.settings.answers), self.settings.by_deviation).flatten()
        return self.examples(answers, log_probs=log_probs, reference=reference, advantages=advantages)

    def score(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        given, settings = part.inputs, self.settings
        log_probs = self.log_probs(self.policy, part.ids, given["padding"], drawn=True)
        scores = score_grpo(
            log_probs, given["log_probs"], given["reference"], given["advantages"], next_of(given["answer"]),
            self.weight, settings.clip, settings.weighted_kl,
        )  # fmt: skip
        scores["k3"] = scores.pop("kl")  # "kl" is that of whole answers
        return self.shared(scores, part.counts, whole, by_answer=("loss",))


OBJECTIVE = ObjectiveKind(
    "grpo", 14, {Preferences: PreferredAnswers},
    measure=measure_preferences, sample=sample_answer, unit="the clipped objective, of which less is better",
    learner=GrpoLearner, needs=CAUSAL, whole=True, least_answers=2, check=check_answers,
    settings=(PolicySettings, DrawnSettings, GrpoSettings),
)  # fmt: skip
