"""Attribution patching: what a patch does, to first order, for all places at once, from one run forward and back.

Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale"; Syed et al. 2024, "Attribution Patching
Outperforms Automated Circuit Discovery", section 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from engine.analysis.interventions.metric import Metric, logits_at, widen
from engine.analysis.interventions.patching import By, Origin, check_by, new_values, total_over
from engine.analysis.interventions.sites import Site
from engine.model.hooks import HookPoint, active
from engine.model.transformer import Transformer
from engine.runtime.batch import segments
from engine.runtime.recording import Recording
from engine.runtime.run import resolve_edits
from engine.runtime.trace import Trace


class GradientRecording(Recording):
    """A recording whose values are parts of a graph, from the first that is kept on."""

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        value = super().visit(hook, value)
        if hook.name in self.kept and not value.requires_grad:
            value = self.values[hook.name] = value.detach().requires_grad_()
        return value


def differentiate(
    model: Transformer, base: Trace, hooks: Sequence[str], metric: Metric, row: int, resid: Tensor | None = None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Values of hooks, and d metric / d each of them, in the base's run, or in the same from another stream into block
    0; 0 for a value that the metric does not depend on. Raises ValueError for a metric without a gradient."""
    if metric.kind == "rank":
        raise ValueError("A rank goes by steps and has no gradient; choose another metric.")
    given: Any = base.encodings or base.ids
    target = base.target_encodings or base.target
    edits = resolve_edits(model, base.edits, given, target, mask=base.mask)
    recording = GradientRecording(model, frozenset(hooks), edits, base.padding, base.target_padding)
    kinds = segments(base.encodings, base.ids) if model.config.embedding.segments else None
    with torch.enable_grad(), active(recording):
        logits, _ = model.forward_with_pooled(
            base.ids, target=base.target, segments=kinds, mask=base.mask, padding=base.padding,
            target_padding=base.target_padding, resid=resid,
        )  # fmt: skip
        measured = metric(widen(logits_at(model, logits, row)))[0]
        values = [recording.values[name] for name in hooks]
        found = torch.autograd.grad(measured, values, allow_unused=True)
    slopes = [torch.zeros_like(value) if one is None else one for value, one in zip(values, found, strict=True)]
    return (
        {name: value.detach() for name, value in zip(hooks, values, strict=True)},
        dict(zip(hooks, slopes, strict=True)),
    )


def estimate_blocks(
    model: Transformer,
    base: Trace,
    origin: Origin,
    site: Site,
    layers: Sequence[int],
    metric: Metric,
    row: int,
    by: Sequence[By] = ("pos",),
    side: str = "",
) -> Tensor:
    """Change of the metric that each patch of `patch_block` makes to first order, layer and head pos.

    Raises ValueError for a metric without a gradient, and as `patch_block` does.
    """
    by = check_by(site, by)
    hooks = [site.hook(model, layer, side) for layer in layers]
    _, slopes = differentiate(model, base, [hook.name for hook in hooks], metric, row)
    found = []
    for hook in hooks:
        change = new_values(base, origin, hook)[2]
        found.append(total_over(change * widen(slopes[hook.name][0]), hook, by))
    return torch.stack(found)
