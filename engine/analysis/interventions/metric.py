"""What a prediction is measured by, of a run and of the runs that put other values in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from engine.model.config import Link
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace

MetricKind = Literal["logit", "probability", "log-probability", "rank", "KL"]


@dataclass(frozen=True)
class Metric:
    """Measure of the distribution at `row` of a head's logits: the logit of a candidate, with `against` its lead over
    another one, its probability, the ln of that, its rank (1: the likeliest), or KL(`aim` || the distribution) in nats.
    `aim` (candidate) is the log distribution of the run that values come from. With the `link` "logistic", and of a
    single logit, a class holds or does not, whatever the others do; KL is then the sum over the classes.

    Raises ValueError for a lead over itself, and for a KL without an aim.
    """

    kind: MetricKind
    candidate: int
    against: int | None = None
    aim: Tensor | None = None
    link: Link = "softmax"

    def __post_init__(self) -> None:
        if self.kind not in get_args(MetricKind):
            raise ValueError(f"a metric must be one of {', '.join(get_args(MetricKind))}, got {self.kind!r}.")
        if self.kind == "logit" and self.against == self.candidate:
            raise ValueError("A lead is over another candidate, got the same twice; choose another one.")
        if self.kind == "KL" and self.aim is None:
            raise ValueError("KL is measured from another run, and there is none; choose another metric.")

    def __call__(self, logits: Tensor) -> Tensor:
        """Of each run, batch; `logits` is batch candidate."""
        if self.kind == "probability":
            return log_distribution(logits, self.link)[:, self.candidate].exp()
        if self.kind == "log-probability":
            return log_distribution(logits, self.link)[:, self.candidate]
        if self.kind == "rank":
            return 1 + (logits > logits[:, self.candidate, None]).sum(-1).to(logits.dtype)
        if self.kind == "KL":
            assert self.aim is not None
            return (self.aim.exp() * (self.aim - log_distribution(logits, self.link))).nansum(-1)
        chosen = logits[:, self.candidate]
        return chosen if self.against is None else chosen - logits[:, self.against]


def log_distribution(logits: Tensor, link: Link = "softmax") -> Tensor:
    """Nats, ... candidate; of classes that hold or do not those of yes, and behind them those of no."""
    apart = link == "logistic" or logits.shape[-1] == 1
    return torch.cat([logsigmoid(logits), logsigmoid(-logits)], -1) if apart else logits.log_softmax(-1)


def logits_at(model: Transformer, logits: Tensor, row: int) -> Tensor:
    """Logits of one row, batch candidate: of a position, of the whole text, or of an answer's start or end."""
    if model.config.head.kind == "span":
        logits = logits.mT
    return logits if logits.dim() == 2 else logits[:, row]


def read_row(model: Transformer, trace: Trace, row: int) -> Tensor:
    """Logits of a row of a run, batch candidate, in float32 at least."""
    return widen(logits_at(model, trace["logits"], row))


def widen(value: Tensor) -> Tensor:
    """In float32 at least."""
    return value.to(torch.promote_types(value.dtype, torch.float32))
