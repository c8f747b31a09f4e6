"""Direct preference optimisation: a policy is its own reward model (Rafailov et al. 2023)."""

from __future__ import annotations

from torch import Tensor

from engine.data.kinds.preferences import Preferences
from engine.scoring.examples import Examples
from engine.training.measures.preferences import measure_preferences, sample_answer
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.objectives.kinds.reward import score_rewards
from engine.training.policy.learner import PairLearner, texts_of
from engine.training.recipe.preference import PolicySettings
from engine.training.sources.preferences import PreferredAnswers


def score_dpo(
    chosen: Tensor, rejected: Tensor, reference_chosen: Tensor, reference_rejected: Tensor, beta: float
) -> dict[str, Tensor]:
    """Scalars by name, from the log-probabilities in nats of whole answers, summed over their tokens, under the policy
    and under the reference, each (pair,).

    The loss is equation 7: that of a reward model for the implicit rewards beta log(policy / reference), which
    "accuracy" and "margin" are of too; "chosen_reward" and "rejected_reward" are their means.
    """
    chosen_reward, rejected_reward = beta * (chosen - reference_chosen), beta * (rejected - reference_rejected)
    return score_rewards(chosen_reward, rejected_reward) | {
        "chosen_reward": chosen_reward.detach().mean(),
        "rejected_reward": rejected_reward.detach().mean(),
    }


class DpoLearner(PairLearner):
    """Direct preference optimisation (Rafailov et al. 2023)."""

    def compare(self, part: Examples) -> dict[str, Tensor]:
        policy, reference = self.answer_log_probs(*texts_of(part))
        return score_dpo(policy[0::2], policy[1::2], reference[0::2], reference[1::2], self.weight)


OBJECTIVE = ObjectiveKind(
    "dpo", 12, {Preferences: PreferredAnswers},
    measure=measure_preferences, sample=sample_answer, unit="nats a pair", learner=DpoLearner, needs=CAUSAL, whole=True,
    settings=(PolicySettings,),
)  # fmt: skip
