"""What the page about attention draws of a long text: every head as an overview, and one in tiles at the zoom in view.

No pattern travels whole. What assets/views/attention/long.js asks for later, `answered_long` answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isqrt
from typing import Any, Literal

import torch
from torch import Tensor

from engine.analysis.edit_extent import STAGES, touched_heads, touching
from engine.analysis.heads import SCORES, scores
from engine.analysis.summarised_run import revisited
from engine.analysis.tiles import peaks, tile, top_keys
from engine.checkpoints import Checkpoint
from engine.runtime import library
from engine.runtime.overview_cache import LongRun
from engine.runtime.trace import Trace
from views.attention.attention import edited_heads
from views.attention.long_aggregates import answered_whole
from views.attention.long_column import column_of
from views.attention.long_norms import moved_of, values_of
from views.attention.long_positional import placed
from views.attention.long_window import SEVERAL, points_of, window_of
from views.attention.questions import ATTENTION, cached_copying
from views.core.payload import pack
from views.core.questions import STALE, UNKNOWN, Query, check_axes
from views.core.run_context import RunContext
from views.walkthrough.walkthrough import Lane, lane_header, model_header

TILE = 128  # cells of a tile, along each side
ACROSS = 256  # cells that a view shows, along each side
OVERVIEWS = 256 * 2**10  # bytes of all overviews together
CELLS = (16, 64)  # a side of one, at least and at most
LISTED = 20  # keys of a row
Focus = Literal["attn", "cross_attn"]


@dataclass(frozen=True)
class Head:
    """One head: of which stack ("" where there is one), which of its attentions, layer and head from 0."""

    side: str
    focus: Focus
    layer: int
    head: int

    @property
    def hook(self) -> str:
        return f"{self.side + '.' if self.side else ''}blocks.{self.layer}.{self.focus}.pattern"


@dataclass(frozen=True)
class Long:
    """A run on a long text: its trace holds no pattern, its overviews (u8 head row column) are by hook."""

    run: RunContext
    made: LongRun
    cells: int
    shown: Head
    overviews: Mapping[str, Tensor]

    @property
    def trace(self) -> Trace:
        return self.run.trace

    def pattern(self, head: Head) -> Tensor:
        """Of one head, pos key."""
        return library.glances.head(self.made, head.hook, head.head, self.cells)

    def edited(self, head: Head) -> Tensor | None:
        """Which cells of one head edits put there, u8 pos key as `touched_cells` has it; None where no edit acts."""
        crosses = head.focus == "cross_attn"
        stack = next(lane.config for lane in self.run.lanes if lane.side == head.side)
        if not touched_heads(self.trace, stack, head.side, crosses)[head.layer, head.head]:
            return None
        acts = (part for _, part in touching(self.trace, head.layer, head.side, crosses))
        if not set(STAGES) & set(acts):
            return None
        return library.glances.edited(self.made, head.hook, head.head, self.cells)


def glanced(
    name: str,
    checkpoint: Checkpoint,
    lanes: Sequence[Lane],
    made: LongRun,
    look: Mapping[str, int],
    base: LongRun | None = None,
) -> Long:
    """Runs the text, unless that has been done, from `base` where that is kept. `look` may say which layer and head of
    the last stack to show first."""
    config = lanes[-1].config
    layer, head = min(look.get("layer", 0), config.layers - 1), min(look.get("head", 0), config.attention.heads - 1)
    shown = Head(lanes[-1].side, "cross_attn" if config.encoder else "attn", layer, head)
    cells = overview_side(lanes)
    seen = library.glances.of(made, shown.hook, head, cells, base)
    return Long(RunContext(name, checkpoint, seen.trace, list(lanes)), made, cells, shown, seen.overviews)


def overview_side(lanes: Sequence[Lane]) -> int:
    """Cells along a side of an overview, so that those of all heads stay small."""
    heads = sum(lane.config.layers * lane.config.attention.heads * (2 if lane.config.encoder else 1) for lane in lanes)
    return max(CELLS[0], min(CELLS[1], isqrt(OVERVIEWS // heads)))


def attention_long(long: Long, *, name: str, look: Mapping[str, int], notes: Mapping[str, Any]) -> bytes:
    """The payload: the overviews, and of the head that is shown first the whole pattern in tiles and one row."""
    lanes, trace = long.run.lanes, long.trace
    pattern, edited = long.pattern(long.shown), long.edited(long.shown)
    row = min(look.get("query", first_row(pattern, lanes[-1], long.shown)), len(pattern) - 1)
    arrays, tiles = overviews(long), []
    for number, (rows, columns) in enumerate(at_rest(*pattern.shape)):
        about, parts = tiled(pattern, rows, columns, edited)
        tiles.append(about)
        arrays |= {f"tile.{number}.{part}": value for part, value in parts.items()}
    listed, parts = heaviest(pattern, row)
    arrays |= {f"row.{part}": value for part, value in parts.items()}
    header = {
        "trace": long.run.digest,
        "model": model_header(name, lanes[-1].config),
        "lanes": {lane.side: lane_header(trace, lane) for lane in lanes},
        "edited": sorted({hook for edit in trace.edits for hook in edit.touches()}),
        "editedHeads": edited_heads(trace, lanes),
        "reads": None,
        "scoreTable": [{**asdict(score), "focus": "attn"} for score in SCORES],
        "look": {"layer": long.shown.layer, "head": long.shown.head, "query": row},
        "first": {**asdict(long.shown), "pos": row, "row": listed, "tiles": tiles},
        "tile": TILE,
        "cells": long.cells,
        "across": ACROSS,
        **notes,
    }
    return pack(header, arrays)


def overviews(long: Long) -> dict[str, Tensor]:
    """patterns.{stack}{attention}: u8 layer head row column, 255 = 1, each cell the largest of its block."""
    arrays: dict[str, Tensor] = {}
    for lane in long.run.lanes:
        for focus in ("attn", *(["cross_attn"] if lane.config.encoder else [])):
            hooks = [f"{lane.prefix}blocks.{layer}.{focus}.pattern" for layer in range(lane.config.layers)]
            arrays[f"patterns.{lane.prefix}{focus}"] = torch.stack([long.overviews[hook] for hook in hooks])
    return arrays


def first_row(pattern: Tensor, lane: Lane, shown: Head) -> int:
    """The row to read first: the last where it alone has read everything, else that of the largest weight."""
    if shown.focus == "cross_attn" or lane.config.attention.mask != "full":
        return len(pattern) - 1
    return int(pattern.amax(-1).argmax())


def at_rest(rows: int, columns: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The windows of the tiles that show a whole pattern, row by row."""
    return [(down, across) for down in spans(rows) for across in spans(columns)]


def spans(size: int) -> list[tuple[int, int]]:
    """Of one axis, as wide as each other: the last one reaches back into the one before."""
    width = TILE
    while size * TILE > ACROSS * width:
        width *= 2
    starts = [min(first, max(0, size - width)) for first in range(0, size, width)]
    return [(first, min(first + width, size)) for first in starts]


def tiled(
    pattern: Tensor, rows: tuple[int, int], columns: tuple[int, int], edited: Tensor | None = None, side: int = TILE
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A window as at most `side` x `side` cells: `weight` row column, each the largest of its block and exact.

    `at` says which of its block that is, counted row by row; it is left out where a block is one weight. A window in
    which every weight is zero is "empty" and brings neither. Of `edited`, 0 where no edit put a weight, comes u8 where
    any of a block is another, unless none of the window is.
    """
    found = tile(pattern, rows, columns, side)
    high, wide = found.block
    about = {"rows": list(rows), "columns": list(columns), "block": [high, wide], "empty": not bool(found.weight.any())}
    arrays: dict[str, Tensor] = {}
    if edited is not None:
        put = peaks(peaks((edited[slice(*rows), slice(*columns)] > 0).to(torch.uint8), -2, high), -1, wide)
        arrays |= {"edited": put} if put.any() else {}
    if about["empty"]:
        return about, arrays
    if high * wide == 1:
        return about, arrays | {"weight": found.weight}
    at = (found.pos - rows[0]) % high * wide + (found.key - columns[0]) % wide
    return about, arrays | {"weight": found.weight, "at": at.to(torch.uint8 if high * wide <= 256 else torch.int32)}


def heaviest(pattern: Tensor, row: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """One row, `weights`, and of it the keys with the most, `key` and `weight`: so many others share the `rest`."""
    weights = pattern[row].float()
    top = top_keys(weights, LISTED)
    others = int((weights > 0).sum()) - int((top.weight > 0).sum())
    return {"others": others, "rest": float(top.rest)}, {"key": top.key, "weight": top.weight, "weights": weights}


def answered_long(long: Long, query: Query) -> bytes:
    """Raises ValueError, with a sentence, for what this run does not have and what no view asks."""
    if query.get("trace") != long.run.digest:
        raise ValueError(STALE)
    match query:
        case {"ask": "tile", "rows": [int(top), int(bottom)], "columns": [int(left), int(right)]}:
            head = head_of(long, query)
            values = values_of(long, head, query.get("shows"))
            return pack(*tiled(values, (top, bottom), (left, right), long.edited(head)))
        case {"ask": "moved"}:
            return moved_of(long, head_of(long, query))
        case {"ask": "row", "pos": int(pos)}:
            pattern = long.pattern(head_of(long, query, "pos"))
            return pack(*heaviest(pattern, pos))
        case {"ask": "column", "key": int(key)}:
            return column_of(long, head_of(long, query, "key"), key)
        case {"ask": "window", "pos": int(pos)}:
            picked = query.get("key")
            head = head_of(long, query, "pos", *(() if picked is None else ("key",)))
            return window_of(long, head, pos, picked, beside(long, query))
        case {"ask": "points", "how": "pca" | "tsne" as how}:
            return points_of(long, head_of(long, query), how)
        case {"ask": "ov" | "qk"}:  # of the weights and the tokens, however many there are
            return ATTENTION.questions[str(query["ask"])].answer(long.run, query)
        case {"ask": "scores", "layer": int(layer), "side": str(side)}:
            check_axes(long.run, query, ("side", "layer"))
            return pack({}, measured(long, side, layer))
        case {"ask": "positional", "side": str(side)}:
            check_axes(long.run, query, ("side",))
            return placed(long, side, query.get("whole") is True)
        case {"ask": "average" | "text_average" | "rollout" | "flow" | "flows"}:
            return answered_whole(long, query)
    raise ValueError(UNKNOWN)


def head_of(long: Long, query: Query, *more: str) -> Head:
    check_axes(long.run, query, ("side", "layer", "head", *more))
    focus: Focus = "cross_attn" if query.get("focus") == "cross_attn" else "attn"
    return Head(query["side"], focus, query["layer"], query["head"])


def beside(long: Long, query: Query) -> list[Head]:
    """The heads that a query compares with its own, [[layer, head], ...], of the same attention."""
    match query.get("beside", []):
        case [*heads] if len(heads) < SEVERAL and all(isinstance(one, list) and len(one) == 2 for one in heads):
            return [head_of(long, {**query, "layer": layer, "head": head}) for layer, head in heads]
    raise ValueError(UNKNOWN)


def measured(long: Long, side: str, layer: int) -> dict[str, Tensor]:
    """The scores of one layer's self-attention, each head, as `engine.analysis.heads.SCORES` defines them."""
    made, lane = long.made, next(lane for lane in long.run.lanes if lane.side == side)
    block = f"{lane.prefix}blocks.{layer}.attn."
    wanted = {f"{block}pattern": first_text, f"{block}mask": first_text}
    seen = revisited(made.model, made.read, wanted, long.trace, made.edits, target=made.target)
    ids = torch.tensor(lane.ids) if lane.ids else None
    found = vars(scores(seen[f"{block}pattern"].float(), ids, seen[f"{block}mask"]))
    return found | {"copying": cached_copying(long.run.model, side)[layer]}


def first_text(value: Tensor) -> Tensor:
    return value[0]
