"""Sweeps: each place of a kind, patched by itself, as shares of what separates two runs.

sweep = Sweep(model, run(model, clean), run(model, corrupted), "logit", row=-1, candidate=5, against=7)
sweep.patch("z", ("head", "pos")).effect  # layer head pos
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from engine.analysis.interventions.edges import Edges, Node, attribute_edges, patch_paths
from engine.analysis.interventions.gradient import estimate_blocks
from engine.analysis.interventions.metric import Metric, MetricKind, log_distribution, read_row
from engine.analysis.interventions.pairs import partner_row, take_from
from engine.analysis.interventions.patching import Ablation, By, Origin, Resample, patch_block
from engine.analysis.interventions.sites import SITES
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace

Direction = Literal["restore", "break"]
SAME = 1e-6  # of a metric's size: what rounding leaves between two runs


@dataclass(frozen=True)
class Effects:
    """`effect` is 0 where a patch did nothing and 1 where it did what patching everything does; of an ablation it is
    the change of the metric itself. `measured` is the metric, `moved` the length of the change that was made, 0 where
    both runs hold the same. All are [layer] [head] [pos]."""

    measured: Tensor
    effect: Tensor
    moved: Tensor


@dataclass(frozen=True)
class Sweep:
    """Two runs of one model, each on one text with everything kept, and a metric of what they predict.

    `restore` puts values of `trace` into the `other` run (denoising), `break` those of `other` into `trace` (noising);
    an ablation puts constants, or values of other texts, into `trace`. `row` counts the logits of `trace`, from the end
    where it is negative. Raises ValueError for runs that cannot be set beside each other, and for a metric that both
    have alike.
    """

    model: Transformer
    trace: Trace
    other: Trace | Ablation
    metric: MetricKind
    row: int
    candidate: int
    against: int | None = None
    direction: Direction = "restore"

    def __post_init__(self) -> None:
        if isinstance(self.other, Ablation):
            return
        same = self.trace.ids.shape == self.other.ids.shape and torch.equal(self.trace.ids, self.other.ids)
        if same and self.trace.edits == self.other.edits:
            raise ValueError("Both runs read the same, so that no value differs; change a token of the other one.")
        size = max(abs(self.nothing), abs(self.everything), 1.0)
        if abs(self.everything - self.nothing) <= SAME * size:
            raise ValueError(
                f"Both runs have the same {self.metric}, {self.nothing:.4g}, so that there is nothing to restore or to "
                "break; choose another metric, candidate or text."
            )

    @cached_property
    def first_row(self) -> int:
        rows = self.trace["logits"].shape[1]
        return self.row + rows if self.row < 0 else self.row

    @cached_property
    def base(self) -> Trace:
        """The run that is changed."""
        return self.other if self.direction == "restore" and isinstance(self.other, Trace) else self.trace

    @cached_property
    def source(self) -> Trace:
        """The run that values are taken from; the same run where that is none."""
        return self.trace if self.base is self.other or isinstance(self.other, Ablation) else self.other

    @cached_property
    def origin(self) -> Origin:
        return self.other if isinstance(self.other, Ablation) else take_from(self.base, self.source)

    @cached_property
    def origins(self) -> tuple[Origin, ...]:
        """Origins whose effects, measured one by one, have the mean that is asked for."""
        return self.other.runs if isinstance(self.other, Resample) else (self.origin,)

    @cached_property
    def rows(self) -> tuple[int, int]:
        """The row of the base's logits, and of the run's that values are taken from."""
        if isinstance(self.other, Ablation):
            return self.first_row, self.first_row
        partner = partner_row(self.trace, self.other, self.first_row, self.trace["logits"].shape[1])
        return (partner, self.first_row) if self.base is self.other else (self.first_row, partner)

    @cached_property
    def measure(self) -> Metric:
        aim, link = None, self.model.config.link
        if self.metric == "KL":
            aim = log_distribution(read_row(self.model, self.source, self.rows[1])[0], link)
        return Metric(self.metric, self.candidate, self.against, aim, link)

    @cached_property
    def nothing(self) -> float:
        """The metric of the run that is changed."""
        return float(self.measure(read_row(self.model, self.base, self.rows[0]))[0])

    @cached_property
    def everything(self) -> float:
        """The metric of the run that values are taken from; NaN where that is none."""
        if isinstance(self.other, Ablation):
            return float("nan")
        return float(self.measure(read_row(self.model, self.source, self.rows[1]))[0])

    @property
    def span(self) -> float:
        """What an effect of 1 is."""
        return 1.0 if isinstance(self.other, Ablation) else self.everything - self.nothing

    def check_site(self, site: str, side: str = "") -> None:
        """Raises ValueError for a site of which the values of one run do not fit the other."""
        hook = SITES[site].hook(self.model, 0, side)
        self.origin.values(hook, self.base[hook.name][:1])

    def patch_layer(self, site: str, by: Sequence[By], layer: int, side: str = "") -> Effects:
        """Effects in one block."""
        given = SITES[site], layer, self.measure, self.rows[0], by, side
        each = [patch_block(self.model, self.base, origin, *given) for origin in self.origins]
        measured, moved = (torch.stack([getattr(one, name) for one in each]).mean(0) for name in ("measured", "moved"))
        return Effects(measured, (measured - self.nothing) / self.span + 0.0, moved)

    def patch(self, site: str, by: Sequence[By], side: str = "") -> Effects:
        """Effects in every block, layer first."""
        layers = [self.patch_layer(site, by, layer, side) for layer in range(self.count_layers(side))]
        parts = ("measured", "effect", "moved")
        return Effects(**{part: torch.stack([getattr(one, part) for one in layers]) for part in parts})

    def estimate(self, site: str, by: Sequence[By], side: str = "") -> Tensor:
        """The same effects to first order, layer first: attribution patching."""
        layers = range(self.count_layers(side))
        given = self.base, self.origin, SITES[site], layers, self.measure, self.rows[0], by, side
        return estimate_blocks(self.model, *given) / self.span

    def patch_paths(self, reader: Node) -> Edges:
        """Effects of what one part reads of each other one (`engine.analysis.interventions.edges`)."""
        each = [patch_paths(self.model, self.base, one, reader, self.measure, self.rows[0]) for one in self.origins]
        values = torch.stack([one.values for one in each]).mean(0)
        return Edges(each[0].writers, each[0].readers, (values - self.nothing) / self.span)

    def estimate_edges(self, steps: int = 0) -> Edges:
        """The same of all edges, to first order (`engine.analysis.interventions.edges`)."""
        found = attribute_edges(self.model, self.base, self.origin, self.measure, self.rows[0], steps)
        return Edges(found.writers, found.readers, found.values / self.span)

    def count_layers(self, side: str = "") -> int:
        encoder = self.model.config.encoder
        return encoder.layers if side == "encoder" and encoder is not None else self.model.config.layers
