"""How wrong a model was, and how often it was right."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.training.objectives.examples import UNASKED, Counts, Examples

Outputs = tuple[Tensor, Tensor | None]  # the logits of the head, and of the second one
Shares = tuple[float, float]  # of all targets that count, those of the head and those of the second one
ALL = (1.0, 1.0)


def score(outputs: Outputs, examples: Examples, shares: Shares = ALL) -> dict[str, Tensor]:
    """Scalars by name, "loss" (what is minimised) first. Each is a mean times its share, so that the scores of the
    parts of a batch add up to those of the batch.

    The loss of a model with two heads is the sum of theirs (Devlin et al. 2019, section A.2).
    """
    logits, second = outputs
    found = {
        "loss": mean_loss(logits, examples.targets) * shares[0],
        "accuracy": accuracy(logits.detach(), examples.targets) * shares[0],
    }
    if second is not None and examples.second is not None:
        found["loss"] = found["loss"] + mean_loss(second, examples.second) * shares[1]
        found["next_sentence_accuracy"] = accuracy(second.detach(), examples.second) * shares[1]
    return found


def shares_of(part: Counts, whole: Counts) -> Shares:
    return part.first / max(whole.first, 1), part.second / max(whole.second, 1)


def mean_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy in nats a counted target; `logits` have one axis, of classes, more than `targets`."""
    return cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=UNASKED)


def accuracy(logits: Tensor, targets: Tensor) -> Tensor:
    """The share of counted targets that were the model's first choice."""
    asked = targets != UNASKED
    return ((logits.argmax(-1) == targets) & asked).sum() / asked.sum()
