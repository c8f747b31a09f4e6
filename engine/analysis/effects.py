"""What edits did: two runs of the same text, before and after, compared.

Everything is of one text of the batch, `row`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from engine.analysis.summarised_run import patterns_from, rerun_reduced
from engine.edits import Side
from engine.model.config import Link
from engine.model.layers.attention import Attention
from engine.model.transformer import Transformer
from engine.runtime.batch import Input
from engine.runtime.run import first_edited
from engine.runtime.trace import Trace

Order = Literal["change", "before", "after", "either"]


@dataclass(frozen=True)
class Candidate:
    """A token, or a class, with its logit and its probability (at temperature 1) in both runs."""

    id: int
    logit_before: float
    logit_after: float
    p_before: float
    p_after: float


@dataclass(frozen=True)
class Shift:
    """Change of a distribution. `kl` is KL(before || after) in nats: infinite where what was possible no longer is.

    `total_variation`, half the sum of |dp|, is the share of the probability that went elsewhere, 0 to 1.
    """

    candidates: tuple[Candidate, ...]
    kl: float
    total_variation: float


def shift(before: Tensor, after: Tensor, count: int = 10, order: Order = "change", link: Link = "softmax") -> Shift:
    """Change of a distribution, from the logits of both runs (vocab or class): its size, and `count` candidates.

    Candidates are ordered by |dp|, by probability in one of the runs, or by the greater of the two. With the link
    "logistic", and of a single logit, a class holds or does not, whatever the others do: `kl` is the sum over the
    classes, and `total_variation` the mean.
    """
    if before.shape != after.shape or before.dim() != 1:
        raise ValueError(f"logits must be one list in both runs, got {tuple(before.shape)} and {tuple(after.shape)}.")
    if order not in get_args(Order):
        raise ValueError(f"order must be one of {', '.join(get_args(Order))}, got {order!r}.")
    log_p, log_q = log_probabilities(before, link), log_probabilities(after, link)
    p, q = log_p.exp(), log_q.exp()
    kl = torch.where(p > 0, p * (log_p - log_q), torch.where(p.isnan(), p, 0.0)).sum().clamp(min=0)
    by = {"change": (q - p).abs(), "before": p, "after": q, "either": torch.maximum(p, q)}[order]
    first = by[: len(before)].sort(descending=True, stable=True).indices[:count].tolist()
    listed = (Candidate(i, float(before[i]), float(after[i]), float(p[i]), float(q[i])) for i in first)
    return Shift(tuple(listed), float(kl), float((q - p).abs().sum() / 2) / questions(len(before), link))


def log_probabilities(logits: Tensor, link: Link = "softmax") -> Tensor:
    """Nats; of classes that hold or do not, and of a single logit, those of yes and then of no."""
    exact = logits.double()
    apart = len(exact) == 1 or link == "logistic"
    return torch.cat([logsigmoid(exact), logsigmoid(-exact)]) if apart else exact.log_softmax(-1)


def questions(classes: int, link: Link) -> int:
    """Number of questions that a head answers, each with a distribution of its own."""
    return classes if link == "logistic" else 1


def shift_at(
    before: Trace,
    after: Trace,
    pos: int | None = None,
    row: int = 0,
    count: int = 10,
    order: Order = "change",
    link: Link = "softmax",
) -> Shift:
    """`shift` of what two runs give at a position, None: the last of the text; of a head that gives one answer: that.

    `link` is `model.config.link`. A head that points into the text (where an answer starts and ends) has two logits a
    position: pass `shift` its column over the positions.
    """
    check_pair(before, after)
    return shift(logits_of(before, pos, row), logits_of(after, pos, row), count, order, link)


def logits_of(trace: Trace, pos: int | None = None, row: int = 0) -> Tensor:
    """vocab, or class. Raises ValueError for a position whose logits were not computed."""
    logits = trace["logits"][row]
    if "pos" not in trace.dims("logits"):
        return logits
    read, real = (trace.ids, trace.padding) if trace.target is None else (trace.target, trace.target_padding)
    length = len(logits) if trace.pictures else read.shape[1]
    computed = list(range(length))[trace.logits_at]
    computed = computed if len(computed) == len(logits) else list(range(length))
    end = length if real is None else int(real[row].sum())
    wanted = end - 1 if pos is None else pos + length if pos < 0 else pos
    if wanted not in computed:
        raise ValueError(f"the logits of position {wanted} were not computed; run with logits_at=slice(None).")
    return logits[computed.index(wanted)]


def pattern_change(before: Trace, after: Trace, suffix: str = "attn.pattern", row: int = 0) -> Tensor:
    """layer head: the total variation between a head's rows in both runs, the mean over the queries that are real.

    0: it attends as before; 1: to other keys altogether. A row that sees nothing is half a row away from any other.
    """
    check_pair(before, after)
    rows = (after.stack(suffix)[:, row] - before.stack(suffix)[:, row]).abs().sum(-1) / 2  # layer head pos
    first = suffix.startswith("encoder.") or before.target is None
    real = before.padding if first else before.target_padding
    return rows.mean(-1) if real is None else rows[..., real[row]].mean(-1)


def layer_pattern_change(
    model: Transformer, encoding: Input, hook: str, before: Trace, after: Trace, **options: Any
) -> Tensor:
    """head: `pattern_change` of the first text in one layer, which is computed again unless it stands in front of the
    first edit.

    The traces are those of two glances at the text (engine/analysis/summarised_run.py), `options` those they were made
    with.
    """
    if hook not in patterns_from(model, first_edited(before.edits, after.edits, model)):
        attention = model.get_submodule(hook.removesuffix(".pattern"))
        assert isinstance(attention, Attention)
        return torch.zeros(attention.heads)
    first = {hook: lambda pattern: pattern[0].clone()}
    old = rerun_reduced(model, encoding, first, before, before.edits, **options)[hook]

    def distance(pattern: Tensor) -> Tensor:
        return (pattern[0] - old).abs().sum(-1).mean(-1) / 2

    return rerun_reduced(model, encoding, {hook: distance}, after, after.edits, **options)[hook]


@dataclass(frozen=True)
class StreamDistance:
    """Distance the residual stream went: into the first block, then behind each. `hooks` say where, layer.

    `relative` (layer pos) is |after - before| / |before|, and `cosine` (layer pos) that of the angle between the two.
    """

    hooks: tuple[str, ...]
    relative: Tensor
    cosine: Tensor


def stream_distance(before: Trace, after: Trace, row: int = 0, side: Side = "decoder") -> StreamDistance:
    """Stream of the named one of two stacks. A vector of zeros has no direction: its cosine is 1 to another one, else
    0."""
    check_pair(before, after)
    prefix = f"{side}." if before.target is not None else ""
    layers = len([name for name in before.hooks if name.startswith(f"{prefix}blocks.") and name.endswith("resid_post")])
    if not layers:
        raise ValueError("this model has no blocks, so that its stream goes nowhere.")
    hooks = (f"{prefix}blocks.0.resid_pre", *(f"{prefix}blocks.{layer}.resid_post" for layer in range(layers)))
    old = torch.stack([before[hook][row] for hook in hooks]).double()  # layer pos d_model
    new = torch.stack([after[hook][row] for hook in hooks]).double()
    moved, length, other = (new - old).norm(dim=-1), old.norm(dim=-1), new.norm(dim=-1)
    relative = torch.where(moved == 0, 0.0, moved / length)
    cosine = ((old * new).sum(-1) / (length * other)).clamp(-1, 1)
    return StreamDistance(hooks, relative, torch.where(length * other == 0, ((length == other) * 1.0), cosine))


def check_pair(before: Trace, after: Trace) -> None:
    same = before.ids.shape == after.ids.shape and torch.equal(before.ids, after.ids)
    targets = (before.target is None) == (after.target is None)
    if same and targets and before.target is not None and after.target is not None:
        same = before.target.shape == after.target.shape and torch.equal(before.target, after.target)
    if not (same and targets and before.hooks is after.hooks):
        raise ValueError("before and after must be runs of one model on the same tokens; run both on one text.")
