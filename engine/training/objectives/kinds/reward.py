"""A reward model: the more it prefers the chosen answer, the smaller its loss."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.nn.functional import logsigmoid

from engine.data.kinds.preferences import Preferences
from engine.scoring.examples import Examples
from engine.training.measures.preferences import measure_preferences, sample_answer
from engine.training.objectives.kind import ONE_AXIS, WHOLE, ObjectiveKind
from engine.training.policy.learner import PairLearner, texts_of
from engine.training.sources.preferences import PreferredAnswers


def score_rewards(chosen: Tensor, rejected: Tensor) -> dict[str, Tensor]:
    """Scalars by name, from the rewards of the two answers of each pair (pair,).

    The loss is the mean of -log sigmoid(chosen - rejected) in nats (Ouyang et al. 2022, section 3.5): the probability
    that the chosen one wins is a function of the difference (Bradley and Terry 1952). "accuracy" is the share of pairs
    with the larger reward for the chosen answer, "margin" the mean difference.
    """
    margins = chosen - rejected
    return {
        "loss": -logsigmoid(margins).mean(),
        "accuracy": (margins > 0).to(margins.dtype).mean(),
        "margin": margins.detach().mean(),
    }


class RewardLearner(PairLearner):
    """A body with one number at the last real token (Ouyang et al. 2022, section 3.5)."""

    refers = False

    def answer_shown(self) -> list[dict[str, Any]]:
        return []  # it writes nothing

    def compare(self, part: Examples) -> dict[str, Tensor]:
        ids, real, _ = texts_of(part)
        rewards = self.policy(ids, padding=real)[:, 0]
        return score_rewards(rewards[0::2], rewards[1::2])


OBJECTIVE = ObjectiveKind(
    "reward", 11, {Preferences: PreferredAnswers},
    measure=measure_preferences, sample=sample_answer, unit="nats a pair", learner=RewardLearner,
    needs={"head.kind": "sequence", "head.classes": 1, "encoder": None} | ONE_AXIS, never=WHOLE, head="sequence",
    whole=True,
)  # fmt: skip
