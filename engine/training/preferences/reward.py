"""A reward model's loss: the more it prefers the chosen answer, the smaller."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import logsigmoid


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
