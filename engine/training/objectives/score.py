"""How wrong a model was, and how often it was right."""

from __future__ import annotations

from torch import Tensor

from engine.training.objectives.cross_entropy import cross_entropy
from engine.training.objectives.examples import UNASKED, Counts, Examples

Outputs = tuple[Tensor, Tensor | None]  # the logits of the head, and of the second one
Shares = tuple[float, float, float]  # of all targets that count, those of the head and of the second one; of all rows
ALL = (1.0, 1.0, 1.0)


def score(outputs: Outputs, examples: Examples, shares: Shares = ALL, smoothing: float = 0.0) -> dict[str, Tensor]:
    """Scalars by name, "loss" (what is minimised, with labels smoothed) first. Each is a mean times its share, so that
    the scores of the parts of a batch add up to those of the batch.

    The loss of a model with two heads is the sum of theirs (Devlin et al. 2019, section A.2).
    """
    logits, second = outputs
    loss, right = cross_entropy(logits, examples.targets, smoothing, shares[0])
    found = {"loss": loss, "accuracy": share_of(right, examples.targets) * shares[0]}
    if second is not None and examples.second is not None:
        its_loss, its_right = cross_entropy(second, examples.second, smoothing, shares[1])
        found["loss"] = loss + its_loss
        found["next_sentence_accuracy"] = share_of(its_right, examples.second) * shares[1]
    if examples.whole:
        found["exact"] = exact_share(right, examples.targets) * shares[2]
    return found


def shares_of(part: Counts, whole: Counts) -> Shares:
    return part.first / max(whole.first, 1), part.second / max(whole.second, 1), part.rows / max(whole.rows, 1)


def share_of(right: Tensor, targets: Tensor) -> Tensor:
    """Share of the targets that count in which `right` holds."""
    return right.sum() / (targets != UNASKED).sum().clamp(min=1)


def exact_share(right: Tensor, targets: Tensor) -> Tensor:
    """The share of rows in which every counted target was right. It is the share that greedy decoding writes right:
    there the model reads its own first choices, which are the right ones up to the first mistake.
    """
    return (right | (targets == UNASKED)).all(-1).float().mean()
