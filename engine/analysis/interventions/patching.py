"""Activation patching: values of one run in place of another's, at every place of a kind by itself.

Vig et al. 2020, "Investigating Gender Bias in Language Models Using Causal Mediation Analysis"; Meng et al. 2022,
"Locating and Editing Factual Associations in GPT", section 2.1; Zhang & Nanda 2024, "Towards Best Practices of
Activation Patching". A place is a row of a batch, which goes on from the block that is changed: all places of a block
are one run, or as few as fit into memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

from engine.analysis.interventions.metric import Metric, logits_at, read_row, widen
from engine.analysis.interventions.sites import Site
from engine.edits import Edit, Source
from engine.edits.edit import ALL_REAL, RealTokens
from engine.model.hooks import HookPoint
from engine.model.transformer import Transformer
from engine.runtime.run import run
from engine.runtime.trace import Trace

By = Literal["head", "pos"]
TOGETHER = 2**28  # bytes that the rows of one run may take


@dataclass(frozen=True, eq=False)
class PatchRows(Edit, serialised=False):
    """Puts `values` in place of a hook's where `places` is True. Both broadcast to its value, one row a run."""

    hook: str
    values: Tensor
    places: Tensor

    def touches(self) -> tuple[str, ...]:
        return (self.hook,)

    def apply(self, hook: HookPoint, value: Tensor, real: RealTokens = ALL_REAL) -> Tensor:
        return torch.where(self.places.to(value.device), self.values.to(value), value)


class Origin(Protocol):
    """Where values come from."""

    def values(self, hook: HookPoint, value: Tensor) -> tuple[Tensor, Tensor | None]:
        """Values for a hook whose `value` (1 ...) they replace, and at which of its positions there are any, pos; None:
        at all. Raises ValueError where there are none at all."""


@dataclass(frozen=True)
class FromRun:
    """Values of another run. `partners` (pos, by stack) are the positions there that stand for each here, -1: none;
    without them both texts are of one length."""

    trace: Trace
    partners: Mapping[str, Tensor] | None = None

    def values(self, hook: HookPoint, value: Tensor) -> tuple[Tensor, Tensor | None]:
        if hook.name not in self.trace:
            raise ValueError(f"the other texts keep no {hook.name.rsplit('.', 1)[-1]}; choose another part.")
        other = self.trace[hook.name][:1]
        side = next((one for one in ("encoder", "decoder") if hook.name.startswith(f"{one}.")), "")
        partners = None if self.partners is None else self.partners[side]
        if partners is None or torch.equal(partners, torch.arange(other.shape[hook.axes.index("pos")])):
            if other.shape == value.shape:
                return other, None
        if partners is None or "key" in hook.axes:
            sizes = (value.shape[hook.axes.index("pos")], other.shape[hook.axes.index("pos")])
            raise ValueError(
                f"the two runs must have as many tokens for their {hook.name.rsplit('.', 1)[-1]}, got {sizes[0]} and "
                f"{sizes[1]}; choose another part, or texts of one length."
            )
        there = partners.clamp(min=0).to(other.device)
        return other.index_select(hook.axes.index("pos"), there), partners >= 0


@dataclass(frozen=True)
class Constant:
    """The same value at every position: `means` (by hook, without batch and pos) over those of `texts`, or 0."""

    means: Mapping[str, Tensor] | None = None
    texts: tuple[Source, ...] = ()

    def values(self, hook: HookPoint, value: Tensor) -> tuple[Tensor, Tensor | None]:
        if self.means is None:
            return torch.zeros_like(value), None
        if hook.name not in self.means or "key" in hook.axes:
            raise ValueError(f"{hook.name} has no mean that is of its size; choose another part, or put 0 there.")
        return self.means[hook.name].to(value).expand(value.shape), None


@dataclass(frozen=True)
class Resample:
    """Values of other texts at the same positions, one text at a time: what a place does is the mean over all of them
    (resampling ablation: Chan et al. 2022, "Causal Scrubbing")."""

    runs: tuple[FromRun, ...]

    def values(self, hook: HookPoint, value: Tensor) -> tuple[Tensor, Tensor | None]:
        """The mean of all, which does to first order what they do in the mean."""
        return torch.stack([one.values(hook, value)[0] for one in self.runs]).mean(0), None


Ablation = Constant | Resample  # what says nothing of the text


@dataclass(frozen=True)
class Patched:
    """What each place did: `measured` is the metric with other values there, `moved` how long the change of the value
    was, both head pos, of what the places are counted by. Where nothing moved, nothing was run."""

    measured: Tensor
    moved: Tensor


@torch.no_grad()
def patch_block(
    model: Transformer,
    base: Trace,
    origin: Origin,
    site: Site,
    layer: int,
    metric: Metric,
    row: int,
    by: Sequence[By] = ("pos",),
    side: str = "",
) -> Patched:
    """Patches each place of one block by itself. `base` must hold every value of one text, `row` is of its logits.

    Raises ValueError for places that a site does not have, and as `Origin.values` does.
    """
    hook = site.hook(model, layer, side)
    by = check_by(site, by)
    values, available, change = new_values(base, origin, hook)
    moved = total_over(change.square(), hook, by).sqrt()
    nothing = metric(read_row(model, base, row))
    measured = nothing.expand(moved.shape).clone()
    touched = moved.nonzero()
    for places in touched.split(rows_together(model, base)) if len(touched) else ():
        where = available
        for name, at in zip(by, places.unbind(1), strict=True):
            where = where & spread(
                torch.arange(moved.shape[by.index(name)], device=at.device) == at[:, None], hook, name
            )
        edit = PatchRows(hook.name, values, where)
        measured[places.unbind(1)] = metric(run_rows(model, base, [edit], len(places), row))
    return Patched(measured, moved)


def new_values(base: Trace, origin: Origin, hook: HookPoint) -> tuple[Tensor, Tensor, Tensor]:
    """Values of an origin for a hook, where it has any, as that broadcasts to them, and what they change the value by,
    without batch."""
    value = base[hook.name][:1]
    values, known = origin.values(hook, value)
    available = torch.ones(1, dtype=torch.bool) if known is None else known
    available = spread(available, hook, "pos").to(value.device)
    return values, available, torch.where(available, widen(values - value), 0.0)[0]


def total_over(values: Tensor, hook: HookPoint, by: Sequence[By]) -> Tensor:
    """Sums of a hook's values without batch over what they are not counted by, head pos."""
    axes = hook.axes[1:]
    others = [number for number, axis in enumerate(axes) if axis not in by]
    total = values.sum(others) if others else values
    return total if [axis for axis in axes if axis in by] == list(by) else total.mT


def spread(chosen: Tensor, hook: HookPoint, axis: str) -> Tensor:
    """`chosen`, ... axis, as it broadcasts to rows of a hook's value."""
    rows = chosen if chosen.dim() == 2 else chosen[None]
    return rows.view([len(rows), *(-1 if name == axis else 1 for name in hook.axes[1:])])


def check_by(site: Site, by: Sequence[By]) -> tuple[By, ...]:
    if not by or any(one not in get_args(By) for one in by) or ("head" in by and not site.by_head):
        raise ValueError(f"the places of the {site.title} are not counted by {' and '.join(by) or 'nothing'}.")
    return tuple(one for one in get_args(By) if one in by)


def run_rows(model: Transformer, base: Trace, edits: Sequence[Edit], rows: int, row: int) -> Tensor:
    """Logits of a row, batch candidate in float32, of the base's text `rows` times under its edits and more."""
    given = list(base.encodings) * rows or base.ids.expand(rows, *base.ids.shape[1:])
    target = list(base.target_encodings) * rows or repeat(base.target, rows)
    each = model.reads_every_position and model.config.head.kind != "span"  # what is needed of no other position
    found = run(
        model, given, ["logits"], [*base.edits, *edits], repeat_trace(base, rows), target=target, mask=base.mask,
        logits_at=slice(row, row + 1) if each else slice(None),
    )  # fmt: skip
    return widen(logits_at(model, found["logits"], 0 if each else row))


def repeat_trace(trace: Trace, rows: int) -> Trace:
    """The same run as that of a batch: views, which take no memory."""
    values = {name: repeat(one, rows) if "batch" in trace.dims(name) else one for name, one in trace.items()}
    return Trace(
        values, trace.hooks, trace.ids.expand(rows, *trace.ids.shape[1:]), repeat(trace.padding, rows),
        trace.encodings * rows, trace.edits, trace.mask, trace.logits_at, trace.past, repeat(trace.target, rows),
        trace.target_encodings * rows, repeat(trace.target_padding, rows),
    )  # fmt: skip


def repeat(value: Tensor | None, rows: int) -> Tensor:
    return None if value is None else value.expand(rows, *value.shape[1:])  # type: ignore[return-value]


def rows_together(model: Transformer, base: Trace) -> int:
    """Rows of one run: what a block and the head hold of each fits into TOGETHER."""
    numbers = 0
    for name, value in base.items():
        if ".0." in name or "blocks." not in name:
            numbers += value.numel() if "batch" in base.dims(name) else 0
    return max(1, TOGETHER // max(1, 4 * numbers))
