"""Where edits act in a run's attention: the heads that they reach into, and the cells of a head that they put there.

What follows from an edit elsewhere, in an earlier block or another head, is changed too, and not marked here.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from engine.analysis.recorded_patterns import patterns, side_of
from engine.edits import Edit, Fetched
from engine.model.config import ModelConfig, kv_heads
from engine.model.hooks import Axes, match_hooks
from engine.model.layers.softmax import softmax
from engine.runtime.trace import Trace

WITHIN = 1e-5  # what rounding leaves between a weight and its softmax
STAGES = ("scores", "capped", "bias", "mask", "masked_scores", "pattern")  # pos key, in their order


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
    for number, stage in reversed(list(enumerate(STAGES, 1))):
        edits = [edit for edit, part in acts if part == stage]
        if edits:
            found[put(trace, before, name, stage, edits, found)] = number
    return found


def put(trace: Trace, before: Trace, name: str, stage: str, edits: list[Edit], like: Tensor) -> Tensor:
    """Bool, of the shape of `like` (head pos key): what `edits` of one stage put there."""
    _, queries, keys = like.shape

    def part_of(run: Trace, part: str) -> Tensor:
        return run[name + part][0, :, :queries, :keys]

    match stage:
        case "mask":
            return part_of(trace, "mask") != part_of(before, "mask")
        case "masked_scores":
            masked = part_of(trace, "masked_scores")
            return ~torch.isclose(masked, masked_before_edits(trace, name, queries, keys), rtol=WITHIN, atol=WITHIN)
        case "pattern":
            weights = softmax(part_of(trace, "masked_scores"), trace[f"{name}temperature"][:, None, None])
            return (part_of(trace, "pattern") - weights).abs() > WITHIN
    return torch.stack([cells_of_edit(edit, trace.hooks[name + stage].axes, like) for edit in edits]).any(0)


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
    edit = edit.edit if isinstance(edit, Fetched) else edit
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
    scores = trace[f"{name}{'capped' if f'{name}capped' in trace else 'scores'}"][0, :, :queries, :keys]
    if f"{name}bias" in trace:
        scores = scores + trace[f"{name}bias"][:, :queries, :keys]
    return torch.where(trace[f"{name}mask"][0, :, :queries, :keys], scores, float("-inf"))


def cells_of_edit(edit: Edit, axes: Axes, cells: Tensor) -> Tensor:
    """Bool, of the shape of `cells` (head pos key): which of them an edit of a hook with these axes names."""
    found = torch.ones_like(cells, dtype=torch.bool)
    for dim, axis in enumerate(("head", "pos", "key")):
        if axis in limits(edit) and axis in axes:
            line = torch.zeros(cells.shape[dim], dtype=torch.bool)
            line[[i for i in limits(edit)[axis] if -len(line) <= i < len(line)]] = True
            found &= line.view([-1 if d == dim else 1 for d in range(3)])
    return found
