"""Kahneman-Tversky optimisation: whether an answer is good, and not which of two is better (Ethayarajh et al. 2024)."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.data.kinds.preferences import Preferences
from engine.scoring.examples import Counts, Examples
from engine.training.examples.padding import pad_rows, real
from engine.training.measures.preferences import measure_preferences, sample_answer
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.policy.learner import PairLearner, texts_of
from engine.training.recipe.preference import KtoSettings, PolicySettings
from engine.training.recipe.recipe import Recipe
from engine.training.sources.preferences import PreferredAnswers

POINT = "reference_point"


def score_kto(
    chosen: Tensor, rejected: Tensor, point: Tensor, beta: float, desirable: float = 1.0, undesirable: float = 1.0
) -> dict[str, Tensor]:
    """Scalars by name, from log(policy / reference) in nats of good answers (chosen,) and of bad ones (rejected,), and
    from the reference point, at least 0, of which no gradient is taken.

    The loss is equation 8, up to its constant: 1 - sigmoid(beta (chosen - point)) of good answers, `desirable` times,
    and 1 - sigmoid(beta (point - rejected)) of bad ones, `undesirable` times. The others are those of `score_dpo`.
    """
    point = point.detach()
    good = desirable * (beta * (point - chosen)).sigmoid()
    bad = undesirable * (beta * (rejected - point)).sigmoid()
    margins = beta * (chosen - rejected)
    return {
        "loss": torch.cat([good, bad]).mean(),
        "accuracy": (margins > 0).to(margins.dtype).mean(),
        "margin": margins.detach().mean(),
        "chosen_reward": beta * chosen.detach().mean(),
        "rejected_reward": beta * rejected.detach().mean(),
        POINT: point.mean(),
    }


def mismatch(ids: Tensor, stands: Tensor, answer: Tensor, fill: int, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """Each prompt with the answer to the prompt of the next pair; of texts (row pos) of which two in turn are a pair,
    and so is what is returned. What goes beyond `longest` tokens is left out."""
    answers = [row[mine] for row, mine in zip(ids, answer, strict=True)]
    prompts = [row[mine] for row, mine in zip(ids, stands & ~answer, strict=True)]
    shift = 2 if len(ids) > 2 else 1
    others = answers[shift:] + answers[:shift]
    rows = [torch.cat(pair)[:longest] for pair in zip(prompts, others, strict=True)]
    mixed, there = pad_rows(rows, fill), real(rows)
    begins = torch.tensor([len(prompt) for prompt in prompts], device=there.device)
    return mixed, there, there & (torch.arange(mixed.shape[1], device=there.device) >= begins[:, None])


class KtoLearner(PairLearner):
    """The chosen answers are the good ones. The reference point is measured once for all of a batch."""

    def batch(self, step: int) -> Examples:
        return self.with_point(super().batch(step))

    def with_point(self, examples: Examples) -> Examples:
        there = examples.to(self.learning.device)
        with torch.no_grad(), self.learning.precision():
            point = self.point(*texts_of(there))
        return Examples({**there.inputs, POINT: point.expand(len(there.inputs["ids"]))}, there.targets)

    def point(self, ids: Tensor, stands: Tensor, answer: Tensor) -> Tensor:
        """Mean of log(policy / reference) in nats over answers to other prompts, or 0 where it is below (section 4.1):
        a biased estimate of KL(policy || reference)."""
        longest = self.learning.model.config.context
        policy, reference = self.answer_log_probs(*mismatch(ids, stands, answer, self.source.fill, longest))
        return (policy - reference).mean().clamp(min=0)

    def compare(self, part: Examples) -> dict[str, Tensor]:
        policy, reference = self.answer_log_probs(*texts_of(part))
        ratios, settings = policy - reference, self.settings
        weights = settings.desirable_weight, settings.undesirable_weight
        return score_kto(ratios[0::2], ratios[1::2], part.inputs[POINT][0], self.weight, *weights)

    def evaluate(self, part: Examples, whole: Counts) -> dict[str, Tensor]:
        return self.score(self.with_point(part), whole)


def check_batch(recipe: Recipe) -> None:
    if recipe.batch.size < 2:
        raise ValueError(f"batch.size must be at least 2, for answers to other prompts, got {recipe.batch.size}.")


OBJECTIVE = ObjectiveKind(
    "kto", 15, {Preferences: PreferredAnswers},
    measure=measure_preferences, sample=sample_answer, unit="1 - the value of an answer, in the mean",
    learner=KtoLearner, needs=CAUSAL, whole=True, check=check_batch,
    settings=(PolicySettings, KtoSettings),
)  # fmt: skip
