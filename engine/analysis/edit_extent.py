"""Where edits act in a run's attention: the heads that they reach into, and the cells of a head that they put there.

What follows from an edit elsewhere, in an earlier block or another head, is changed too, and not marked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor

from engine.analysis.recorded_patterns import patterns, side_of
from engine.analysis.summarised_run import CaptureComplete
from engine.edits import Edit, FetchedEdit
from engine.model.config import ModelConfig, kv_heads
from engine.model.hooks import Axes, HookPoint, match_hooks
from engine.model.layers.softmax import softmax
from engine.model.transformer import Transformer
from engine.runtime.batch import Input
from engine.runtime.recording import Recording
from engine.runtime.run import run
from engine.runtime.trace import Trace

WITHIN = 1e-5  # what rounding leaves between a weight and its softmax
STAGES = ("scores", "capped", "bias", "c2p", "p2c", "mask", "masked_scores", "pattern")  # pos key, in their order


def touched_heads(trace: Trace, stack: ModelConfig, side: str = "", crosses: bool = False) -> Tensor:
    """Bool layer head: whether an edit of the run changes something within the head, of its attention's own.

    An edit of the whole layer's output, or of what goes into it, is none of a head. `stack` is the config of the stack
    that `side` names; nothing of what the run recorded is read.
    """
    attention = stack.cross_attention if crosses else stack.attention
    found = torch.zeros(stack.layers, attention.heads, dtype=torch.bool)
    for layer, heads in enumerate(found):
        for edit, part in edits_of_layer(trace, layer, side, crosses):
            if part not in ("out", "head_out"):
                axes = trace.hooks[layer_name(trace, layer, side, crosses) + part].axes
                heads[of_heads(edit, axes, part, len(heads), kv_heads(attention))] = True
            elif part == "head_out" and "head" in limits(edit):
                heads[limits(edit)["head"]] = True
    return found


def touched_cells(trace: Trace, before: Trace, layer: int, side: str = "", crosses: bool = False) -> Tensor:
    """u8 head pos key: at which of STAGES, counted from 1, an edit put the cell of one layer's attention there; else 0.

    Of a mask those cells that are not as in the run `before` the edits; of a pattern, or of masked scores, those that
    are not what the stage before gives them; of scores and biases those that the edit names. Of several the earliest.
    """
    name = layer_name(trace, layer, side, crosses)
    acts = list(edits_of_layer(trace, layer, side, crosses))
    found = torch.zeros(patterns(trace, side, crosses)[layer].shape, dtype=torch.uint8)
    _, queries, keys = found.shape
    for number, stage in reversed(list(enumerate(STAGES, 1))):
        edits = [edit for edit, part in acts if part == stage]
        if edits:
            after = part_of(trace, name + stage, queries, keys)
            expected = after
            if stage == "mask":
                expected = part_of(before, name + stage, queries, keys)
            elif stage == "masked_scores":
                expected = masked_before_edits(trace, name, queries, keys)
            elif stage == "pattern":
                masked = part_of(trace, f"{name}masked_scores", queries, keys)
                expected = softmax(masked, trace[f"{name}temperature"][:, None, None], sink=trace.get(f"{name}sink"))
            found[put(stage, expected, after, edits, trace.hooks[name + stage].axes)] = number
    return found


class EditExtentRecording(Recording):
    """A recording that notes, stage by stage, which cells of one head its edits put there, and ends at the pattern."""

    def __init__(self, seen: dict[str, Tensor], name: str, head: int, model: Transformer, *given: Any) -> None:
        kept, *rest = given
        super().__init__(model, kept | {f"{name}pattern"}, *rest)
        self.seen, self.name, self.heads = seen, name, slice(head, head + 1)

    def visit(self, hook: HookPoint, value: Tensor) -> Tensor:
        after = super().visit(hook, value)
        stage = hook.name.removeprefix(self.name)
        if stage in STAGES and hook.name in self.edits:
            both = (value, after) if stage == "bias" else (value[0], after[0])
            self.seen[stage] = put(stage, *both, self.edits[hook.name], hook.axes, self.heads)[0]
        if hook.name == f"{self.name}pattern":
            raise CaptureComplete
        return after


def touched_head(
    model: Transformer, encoding: Input, hook: str, head: int, base: Trace, edits: Sequence[Edit], **options: Any
) -> Tensor:
    """`touched_cells` of one head, u8 pos key, whose pattern is called `hook`; that layer is computed again.

    `base` is the edited run with its `streams` (engine/analysis/summarised_run.py), `edits` and `options` those it was
    made with. An edit is looked at where it acts, so no run without it is needed.
    """
    seen: dict[str, Tensor] = {}
    with suppress(CaptureComplete):
        watching = partial(EditExtentRecording, seen, hook.removesuffix("pattern"), head)
        run(model, encoding, (), edits, base, recorder=watching, **options)
    if not seen:
        raise ValueError(f"no edit acts on the scores, mask or pattern of {hook}; ask for a head that one touches.")
    found = torch.zeros(next(iter(seen.values())).shape, dtype=torch.uint8)
    for number, stage in reversed(list(enumerate(STAGES, 1))):
        if stage in seen:
            found[seen[stage]] = number
    return found


def put(
    stage: str, before: Tensor, after: Tensor, edits: Sequence[Edit], axes: Axes, heads: slice = slice(None)
) -> Tensor:
    """Bool head pos key, of some `heads`: what `edits` of one stage put there; `before` is what the stage before gives,
    `after` what stands there (head pos key of all)."""
    old, new = before[heads], after[heads]
    match stage:
        case "mask":
            return old != new
        case "masked_scores":
            return ~torch.isclose(new, old, rtol=WITHIN, atol=WITHIN)
        case "pattern":
            return (new - old).abs() > WITHIN
    return torch.stack([cells_of_edit(edit, axes, after)[heads] for edit in edits]).any(0)


def part_of(trace: Trace, hook: str, queries: int, keys: int) -> Tensor:
    """head pos key of the first text."""
    return (trace[hook][0] if "batch" in trace.dims(hook) else trace[hook])[:, :queries, :keys]


def edits_of_layer(trace: Trace, layer: int, side: str, crosses: bool) -> Iterator[tuple[Edit, str]]:
    """Every edit with each part of this layer's attention that it changes."""
    name = layer_name(trace, layer, side, crosses)
    hooks = tuple(trace.hooks)
    for edit in trace.edits:
        for pattern in edit.touches():
            for hook in match_hooks(pattern, hooks):
                if hook.startswith(name):
                    yield edit, hook.removeprefix(name)


def layer_name(trace: Trace, layer: int, side: str, crosses: bool) -> str:
    side = side_of(trace, side)
    return f"{f'{side}.' if side else ''}blocks.{layer}.{'cross_attn' if crosses else 'attn'}."


def limits(edit: Edit) -> dict[str, list[int]]:
    """The indices of each axis that an edit names; all of an axis that is not there."""
    edit = edit.edit if isinstance(edit, FetchedEdit) else edit
    at = {axis: [i] if isinstance(i, int) else list(i) for axis, i in getattr(edit, "at", {}).items()}
    heads = getattr(edit, "heads", None)
    return at if heads is None else at | {"head": list(heads)}


def of_heads(edit: Edit, axes: Axes, part: str, heads: int, shared: int) -> list[int]:
    """The heads that an edit of a part reaches; of `heads` those that share a changed one of `shared` keys, all do."""
    if "head" not in limits(edit) or "head" not in axes:
        return list(range(heads))
    share = heads // shared if part.partition(".")[0] in ("k", "v", "k_norm", "k_rotated") else 1
    return [one * share + i for one in limits(edit)["head"] for i in range(share)]


def masked_before_edits(trace: Trace, name: str, queries: int, keys: int) -> Tensor:
    """head pos key: what the mask leaves of scores and bias, before any edit of the masked scores."""
    scores = part_of(trace, f"{name}{'capped' if f'{name}capped' in trace else 'scores'}", queries, keys)
    for added in ("bias", "c2p", "p2c"):
        if name + added in trace:
            scores = scores + part_of(trace, name + added, queries, keys)
    return torch.where(part_of(trace, f"{name}mask", queries, keys), scores, float("-inf"))


def cells_of_edit(edit: Edit, axes: Axes, cells: Tensor) -> Tensor:
    """Bool, of the shape of `cells` (head pos key): which of them an edit of a hook with these axes names."""
    found = torch.ones_like(cells, dtype=torch.bool)
    for dim, axis in enumerate(("head", "pos", "key")):
        if axis in limits(edit) and axis in axes:
            line = torch.zeros(cells.shape[dim], dtype=torch.bool)
            line[[i for i in limits(edit)[axis] if -len(line) <= i < len(line)]] = True
            found &= line.view([-1 if d == dim else 1 for d in range(3)])
    return found
