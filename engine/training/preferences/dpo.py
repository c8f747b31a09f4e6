"""Direct preference optimisation: a policy is its own reward model (Rafailov et al. 2023)."""

from __future__ import annotations

from torch import Tensor

from engine.training.preferences.reward import score_rewards


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
