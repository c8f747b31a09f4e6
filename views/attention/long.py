"""What the page about attention draws of a long text: every head as an overview, and one in tiles at the zoom in view.

No pattern travels whole. What assets/views/attention/tiled_source.js asks for later is declared in long_questions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import isqrt
from typing import Any, Literal

import torch
from torch import Tensor

from engine.analysis.averages import value_norms
from engine.analysis.edit_extent import STAGES, edits_of_layer, touched_heads
from engine.analysis.heads import SCORES
from engine.analysis.overview_cache import LongRun, glances
from engine.analysis.summarised_run import rerun_reduced
from engine.analysis.tiles import peaks, tile, top_keys
from engine.analysis.weights.circuit import attention_of
from engine.checkpoints import Checkpoint
from views.attention.attention import edited_heads
from views.core.codegen import Fields, quote
from views.core.lanes import Lane, lane_header, model_header
from views.core.matrix_files import Matrix
from views.core.payload import pack
from views.core.run_context import Moved, RunContext, moved_name

TILE = 128  # cells of a tile, along each side
LARGEST_TILE = 144  # of them, where a view says how many
ACROSS = 256  # cells that a view shows, along each side
OVERVIEWS = 256 * 2**10  # bytes of all overviews together
CELLS = (16, 64)  # a side of one, at least and at most
LISTED = 20  # keys of a row
TINY = torch.finfo(torch.float32).tiny
Focus = Literal["attn", "cross_attn"]


@dataclass(frozen=True)
class HeadOfRun:
    """Name of one head: of which stack ("" where there is one), which of its attentions, layer and head from 0."""

    side: str
    focus: Focus
    layer: int
    head: int

    @property
    def hook(self) -> str:
        return f"{self.side + '.' if self.side else ''}blocks.{self.layer}.{self.focus}.pattern"


@dataclass(frozen=True, kw_only=True)
class LongContext(RunContext):
    """A run on a long text: its trace holds no pattern, its overviews (u8 head row column) are by hook."""

    made: LongRun
    cells: int
    shown: HeadOfRun
    overviews: Mapping[str, Tensor]

    def place(self, layer: int, head: int, side: str, focus: str) -> HeadOfRun:
        return HeadOfRun(side, "cross_attn" if focus == "cross_attn" else "attn", layer, head)

    def size(self, head: HeadOfRun) -> tuple[int, int]:
        """Rows and keys of a head's pattern."""
        own, source = self.lanes_of({"side": head.side, "focus": head.focus})
        return len(own.pieces), len(source.pieces)

    def pattern(self, head: HeadOfRun) -> Tensor:
        """Weights of one head, pos key."""
        return glances.head(self.made, head.hook, head.head, self.cells)

    def lengths(self, head: HeadOfRun, shows: Moved | None = "length") -> Tensor:
        """Lengths |pattern v W_O| of one head, pos key, or their shares of the row; None gives the weights."""
        if shows is None:
            return self.pattern(head)
        norms = self.pattern(head).float().abs() * key_lengths(self, head)
        return norms / row_sums(norms)[:, None] if shows == "share" else norms

    def edited_cells(self, head: HeadOfRun) -> Tensor | None:
        """Cells of one head that edits put there, u8 pos key as `touched_cells` has it; None where no edit acts."""
        crosses = head.focus == "cross_attn"
        if not touched_heads(self.trace, self.lane(head.side).config, head.side, crosses)[head.layer, head.head]:
            return None
        acts = (part for _, part in edits_of_layer(self.trace, head.layer, head.side, crosses))
        if not set(STAGES) & set(acts):
            return None
        return glances.edited_cells(self.made, head.hook, head.head, self.cells)

    def named_head(self, hook: str, head: int | None) -> HeadOfRun:
        """The head whose pattern a hook holds. Raises ValueError for what is no head's pattern of this run."""
        for lane in self.lanes:
            for found in heads_of(lane):
                if found.hook == hook and found.head == head:
                    return found
        raise ValueError(f"Expected the pattern of a head of this run, got {hook[:100]!r}; choose a head of the map.")

    def matrix(self, hook: str, head: int | None, moved: Moved | None) -> Matrix:
        shown = self.named_head(hook, head)
        own, source = self.lanes_of({"side": shown.side, "focus": shown.focus})
        values = self.lengths(shown, moved).detach().cpu().float().numpy()
        tokens = {"query": own.pieces, "key": source.pieces}
        return Matrix(moved_name(hook, moved), self.model_name, values, ("query", "key"), tokens)

    def matrix_script(self, hook: str, head: int | None, moved: Moved | None, row: int, col: int) -> str:
        """Writes the script of one matrix, with a run that keeps what the matrix needs and nothing else."""
        shown = self.named_head(hook, head)
        rows, columns = self.size(shown)
        if not (0 <= row < rows and 0 <= col < columns):
            raise ValueError(f"row and col must be in 0..{rows - 1} and 0..{columns - 1}, got {row} and {col}.")
        element = f"print(values[{row}, {col}].item())"
        if moved is None:
            return self.script({}, [f'values = trace["{hook}"][0, {head}]  # query key', element], (hook,))
        v, where = hook.replace("pattern", "v"), f"{shown.layer}, {quote(shown.side)}, {shown.focus == 'cross_attn'}"
        imports = {"engine.analysis.averages": {"value_norms"}, "engine.analysis.weights.circuit": {"attention_of"}}
        lines = [
            f"attention = attention_of(checkpoint.model, {where})",
            f"norm_by_key = value_norms(attention, trace[{quote(v)}][0])[{head}]",
            f"values = trace[{quote(hook)}][0, {head}].abs() * norm_by_key  # query key",
            *(["values = values / values.sum(-1, keepdim=True).clamp(min=1e-38)"] if moved == "share" else []),
            element,
        ]
        return self.script(imports, lines, (hook, v))


def long_context(
    name: str,
    checkpoint: Checkpoint,
    lanes: Sequence[Lane],
    made: LongRun,
    look: Mapping[str, int],
    base: LongRun | None = None,
    fields: Callable[[], Fields] | None = None,
) -> LongContext:
    """Runs the text, unless that has been done, from `base` where that is kept. `look` may say which layer and head of
    the last stack to show first."""
    config = lanes[-1].config
    layer, head = min(look.get("layer", 0), config.layers - 1), min(look.get("head", 0), config.attention.heads - 1)
    shown = HeadOfRun(lanes[-1].side, "cross_attn" if config.encoder else "attn", layer, head)
    cells = overview_side(lanes)
    seen = glances.overview(made, shown.hook, head, cells, base)
    return LongContext(
        name, checkpoint, seen.trace, list(lanes), fields=fields,
        made=made, cells=cells, shown=shown, overviews=seen.overviews,
    )  # fmt: skip


def heads_of(lane: Lane) -> Iterator[HeadOfRun]:
    """Every head of a stack: those of its self-attention, then those that read the other stack."""
    focuses: tuple[Focus, ...] = ("attn", "cross_attn") if lane.config.encoder is not None else ("attn",)
    for focus, layer, head in product(focuses, range(lane.config.layers), range(lane.config.attention.heads)):
        yield HeadOfRun(lane.side, focus, layer, head)


def row_sums(norms: Tensor) -> Tensor:
    """Sum of each row, pos, at least TINY: an empty row can be divided by it."""
    return norms.sum(-1).clamp(min=TINY)


@torch.no_grad()
def key_lengths(long: LongContext, head: HeadOfRun) -> Tensor:
    """|v W_O| of each key, by which a weight is multiplied; those of all heads of a layer are kept."""
    made, v = long.made, head.hook.replace("pattern", "v")
    attention = attention_of(made.model, head.layer, head.side, head.focus == "cross_attn")

    def make() -> tuple[Tensor]:
        seen = rerun_reduced(made.model, made.read, {v: of_first}, long.trace, made.edits, target=made.target)
        return (seen[v],)

    def of_first(value: Tensor) -> Tensor:
        return value_norms(attention, value[0])

    return glances.cached(made, (v, "moved"), make)[0][head.head]


def overview_side(lanes: Sequence[Lane]) -> int:
    """Cells along a side of an overview, so that those of all heads stay small."""
    heads = sum(lane.config.layers * lane.config.attention.heads * (2 if lane.config.encoder else 1) for lane in lanes)
    return max(CELLS[0], min(CELLS[1], isqrt(OVERVIEWS // heads)))


def attention_long(long: LongContext, *, name: str, look: Mapping[str, int], notes: Mapping[str, Any]) -> bytes:
    """The payload: the overviews, and of the head that is shown first the whole pattern in tiles and one row."""
    lanes, trace = long.lanes, long.trace
    pattern, edited = long.pattern(long.shown), long.edited_cells(long.shown)
    row = min(look.get("query", first_row(pattern, lanes[-1], long.shown)), len(pattern) - 1)
    arrays, tiles = overviews(long), []
    for number, (rows, columns) in enumerate(at_rest(*pattern.shape)):
        about, parts = cut_tile(pattern, rows, columns, edited)
        tiles.append(about)
        arrays |= {f"tile.{number}.{part}": value for part, value in parts.items()}
    listed, parts = heaviest(pattern, row)
    arrays |= {f"row.{part}": value for part, value in parts.items()}
    header = {
        "trace": long.digest,
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


def overviews(long: LongContext) -> dict[str, Tensor]:
    """patterns.{stack}{attention}: u8 layer head row column, 255 = 1, each cell the largest of its block."""
    arrays: dict[str, Tensor] = {}
    for lane in long.lanes:
        for focus in ("attn", *(["cross_attn"] if lane.config.encoder else [])):
            hooks = [f"{lane.prefix}blocks.{layer}.{focus}.pattern" for layer in range(lane.config.layers)]
            arrays[f"patterns.{lane.prefix}{focus}"] = torch.stack([long.overviews[hook] for hook in hooks])
    return arrays


def first_row(pattern: Tensor, lane: Lane, shown: HeadOfRun) -> int:
    """The row to read first: the last where it alone has read everything, else that of the largest weight."""
    if shown.focus == "cross_attn" or lane.config.attention.mask != "full":
        return len(pattern) - 1
    return int(pattern.amax(-1).argmax())


def at_rest(rows: int, columns: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """The windows of the tiles that show a whole pattern, row by row."""
    return [(down, across) for down in spans(rows) for across in spans(columns)]


def spans(size: int) -> list[tuple[int, int]]:
    """Divides one axis into spans of equal width: the last one overlaps the one before."""
    width = TILE
    while size * TILE > ACROSS * width:
        width *= 2
    starts = [min(first, max(0, size - width)) for first in range(0, size, width)]
    return [(first, min(first + width, size)) for first in starts]


def cut_tile(
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
    """Selects of one row, `weights`, the keys with the most, `key` and `weight`; `others` keys share the `rest`."""
    weights = pattern[row].float()
    top = top_keys(weights, LISTED)
    others = int((weights > 0).sum()) - int((top.weight > 0).sum())
    return {"others": others, "rest": float(top.rest)}, {"key": top.key, "weight": top.weight, "weights": weights}
