"""How wrong a model was, and how often it was right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from engine.scoring.examples import UNASKED, Counts, Examples

# --- Cross-entropy ---


AT_ONCE = 2**18  # logits, which with two results of their size stay in a core's own cache


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0, share: float = 1.0) -> tuple[Tensor, Tensor]:
    """The mean loss in nats of the targets that are asked, times `share`, and for each target (its shape) whether it is
    asked and the model's first choice. `logits` have one axis, of classes, more than `targets`.

    `smoothing` is as in torch.nn.functional.cross_entropy. On a CPU the gradient is made together with the loss, and is
    what PyTorch makes, bit for bit. A part of a batch that asks nothing has the share 0, and the loss 0.
    """
    flat, wanted = logits.flatten(0, -2), targets.flatten()
    if not share:
        return flat.sum() * 0.0, torch.zeros_like(targets, dtype=torch.bool)
    if flat.device.type != "cpu" or flat.dtype != torch.float32:
        loss = functional.cross_entropy(flat, wanted, ignore_index=UNASKED, label_smoothing=smoothing) * share
        return loss, logits.detach().argmax(-1) == targets
    asked = wanted != UNASKED
    if asked.all():
        loss, right = CrossEntropy.apply(flat, wanted, smoothing, share)
        return loss, right.view(targets.shape)
    rows = asked.nonzero().flatten()
    if not len(rows):
        return flat.sum() * 0.0, asked.view(targets.shape)
    loss, right = CrossEntropy.apply(flat.index_select(0, rows), wanted[rows], smoothing, share)
    return loss, torch.zeros_like(asked).index_copy(0, rows, right).view(targets.shape)


class CrossEntropy(torch.autograd.Function):
    """Sums the loss of logits (row class) and targets (row), all asked.

    Calls the two ATen functions behind `log_softmax` with `out`: through autograd the same takes 1.7 times as long.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float, share: float) -> tuple[Tensor, Tensor]:
        logits = logits.contiguous()
        rows, classes = logits.shape
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        each = -float(numpy.float32(share) / numpy.float32(rows))  # the gradient of a log-probability, in its rounding
        losses, right = [], []
        for begin, scratch, upstream in stretches(rows, classes, each * smoothing / classes):
            part = slice(begin, begin + len(scratch))
            target = targets[part, None]
            log_p = torch._log_softmax(logits[part], 1, False, out=scratch)
            chosen = log_p.gather(1, target)
            losses.append(chosen.sum() if not smoothing else smoothed_loss(chosen, log_p, smoothing))
            if gradient is not None:
                upstream.scatter_(1, target, each * (1 - smoothing) + each * smoothing / classes)
                torch._log_softmax_backward_data(upstream, log_p, 1, torch.float32, out=gradient[part])
                upstream.scatter_(1, target, each * smoothing / classes)
            log_p.scatter_(1, target, float("-inf"))
            right.append((chosen > log_p.amax(1, keepdim=True)).squeeze(1))
        ctx.save_for_backward(*([] if gradient is None else [gradient]))
        hits = right[0] if len(right) == 1 else torch.cat(right)
        ctx.mark_non_differentiable(hits)
        return sum(losses[1:], losses[0]) * each, hits

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        (gradient,) = ctx.saved_tensors
        return gradient if float(upstream) == 1 else gradient * upstream, None, None, None


def stretches(rows: int, classes: int, fill: float) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Yields stretches of rows: where each begins, and for its rows a place for log-probabilities and one that is full
    of `fill`."""
    size = min(rows, max(1, AT_ONCE // classes))
    scratch, filled = torch.empty(size, classes), torch.full((size, classes), fill)
    for begin in range(0, rows, size):
        here = min(size, rows - begin)
        yield begin, scratch[:here], filled[:here]


def smoothed_loss(chosen: Tensor, log_p: Tensor, smoothing: float) -> Tensor:
    return chosen.sum() * (1 - smoothing) + log_p.sum() * (smoothing / log_p.shape[1])


Outputs = tuple[Tensor, Tensor | None]  # the logits of the head, and of the second one
Shares = tuple[float, float, float]  # of all targets that count, those of the head and of the second one; of all rows


# --- Scores ---


ALL = (1.0, 1.0, 1.0)


def score(
    outputs: Outputs, examples: Examples, shares: Shares = ALL, smoothing: float = 0.0, language_weight: float = 0.0
) -> dict[str, Tensor]:
    """Scalars by name, "loss" (what is minimised, with labels smoothed) first. Each is a mean times its share, so that
    the scores of the parts of a batch add up to those of the batch.

    The loss of a model with two heads is the sum of theirs (Devlin et al. 2019, section A.2); that of a language head
    beside counts `language_weight` times (Radford et al. 2018, section 3.2), and both stand there on their own.
    """
    logits, second = outputs
    if examples.spans:  # each of the two is a choice among the positions
        logits = logits.mT
    loss, right = cross_entropy(logits, examples.targets, smoothing, shares[0])
    found = {"loss": loss, "accuracy": share_of(right, examples.targets) * shares[0]}
    if second is not None and examples.second is not None and examples.second.dim() == 2:
        language_loss, _ = cross_entropy(second, examples.second, 0.0, shares[1])
        found |= {"loss": loss + language_weight * language_loss, "label_loss": loss, "language_loss": language_loss}
    elif second is not None and examples.second is not None:
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
