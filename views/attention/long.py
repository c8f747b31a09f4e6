"""What the page about attention draws of a long text: every head as an overview, and one in tiles at the zoom in view.

No pattern travels whole. What assets/views/attention/tiled_source.js asks for later is declared in long_questions.py.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from math import isqrt
from typing import Any

import torch
from torch import Tensor

from engine.analysis.averages import value_norms
from engine.analysis.edit_extent import STAGES, edits_of_layer, touched_head, touched_heads
from engine.analysis.heads import SCORES
from engine.analysis.overview_cache import LongRun, glances
from engine.analysis.summarised_run import mean_head, rerun_reduced, with_values
from engine.analysis.tiles import Tile, peaks, tile, top_keys
from engine.analysis.tiles import Window as Span
from engine.analysis.weights.circuit import writing_rows
from engine.checkpoints import Checkpoint
from engine.runtime.run import run
from engine.runtime.trace import Trace
from views.attention.attention import kinds_of, run_header
from views.core.codegen import Fields
from views.core.lanes import Lane
from views.core.matrix_files import Matrix
from views.core.payload import pack
from views.core.questions import Axes
from views.core.run_context import HeadOfRun, Moved, Run, T, moved_name

TILE = 128  # cells of a tile, along each side
LARGEST_TILE = 144  # of them, where a view says how many
ACROSS = 256  # cells that a view shows, along each side
OVERVIEWS = 256 * 2**10  # bytes of all overviews together
CELLS = (16, 64)  # a side of one, at least and at most
LISTED = 20  # keys of a row
TINY = torch.finfo(torch.float32).tiny


@dataclass(frozen=True, kw_only=True)
class LongContext(Run):
    """A run on a long text: its trace holds no pattern, its overviews (u8 head row column) are by hook."""

    made: LongRun
    cells: int
    shown: HeadOfRun
    overviews: Mapping[str, Tensor]

    whole = False
    no_script = "Of a long text there are lines of Python for the weights of one head; choose a cell of the map."

    @property
    def key(self) -> Hashable:
        return self.made.key

    def reduce(self, wanted: Mapping[str, Callable[[Tensor], T]]) -> dict[str, T]:
        made = self.made
        return rerun_reduced(made.model, made.read, wanted, self.trace, made.edits, target=made.target)

    def vectors(self, layer: int, side: str, focus: str) -> Trace:
        block = HeadOfRun(side, focus, layer, 0).hook.removesuffix("pattern")
        hooks = [f"{block}{letter}{part}" for letter in "qk" for part in ("", "_norm.out", "_rotated")]
        held = [hook for hook in hooks if hook in self.model.hooks and hook not in self.model.requested]
        return with_values(self.trace, self.reduce(dict.fromkeys(held, first_text)))

    def logits_at(self, at: slice) -> Trace:
        """Runs the head at these positions, from the output of the last block."""
        made = self.made
        return run(made.model, made.read, "logits", made.edits, self.trace, target=made.target, logits_at=at)

    def pattern(self, head: HeadOfRun) -> Tensor:
        return glances.head(self.made, head.hook, head.head, self.cells)

    def mean(self, hook: str) -> Tensor:
        """The mean of all heads of one layer, pos key."""
        return self.cached((hook, "mean"), lambda: self.reduce({hook: mean_head})[hook])

    def lengths(self, head: HeadOfRun, shows: Moved | None = "length") -> Tensor:
        """Lengths |pattern v W_O| of one head, pos key, or their shares of the row; None gives the weights."""
        if shows is None:
            return self.pattern(head)
        norms = self.pattern(head).float().abs() * key_lengths(self, head)
        return norms / row_sums(norms)[:, None] if shows == "share" else norms

    def edited_cells(self, head: HeadOfRun) -> Tensor | None:
        """Cells of one head that edits put there, u8 pos key as `touched_cells` has it; None where no edit acts."""
        layer, side, crosses = head.place
        acts = {part for _, part in edits_of_layer(self.trace, layer, side, crosses)} & {*STAGES}
        if not acts or not touched_heads(self.trace, self.lane(side).config, side, crosses)[layer, head.head]:
            return None
        made, hook = self.made, head.hook
        options = {"target": made.target}
        return self.cached(
            (hook, head.head, "edited"),
            lambda: touched_head(made.model, made.read, hook, head.head, self.trace, made.edits, **options),
        )

    def named_head(self, hook: str, head: int | None) -> HeadOfRun:
        """The head whose pattern a hook holds. Raises ValueError for what is no head's pattern of this run."""
        every = (one for lane in self.lanes for one in heads_of(lane))
        if (found := next((one for one in every if (one.hook, one.head) == (hook, head)), None)) is not None:
            return found
        raise ValueError(f"Expected the pattern of a head of this run, got {hook[:100]!r}; choose a head of the map.")

    def matrix(self, hook: str, head: int | None, moved: Moved | None) -> Matrix:
        shown = self.named_head(hook, head)
        own, source = self.lanes_of({"side": shown.side, "focus": shown.focus})
        values = self.lengths(shown, moved).detach().cpu().float().numpy()
        tokens = {"query": own.pieces, "key": source.pieces}
        return Matrix(moved_name(hook, moved), self.model_name, values, ("query", "key"), tokens)

    def matrix_script(self, hook: str, head: int | None, moved: Moved | None, row: int, col: int) -> str:
        rows, columns = self.size(self.named_head(hook, head))
        if not (0 <= row < rows and 0 <= col < columns):
            raise ValueError(f"row and col must be in 0..{rows - 1} and 0..{columns - 1}, got {row} and {col}.")
        return super().matrix_script(hook, head, moved, row, col)

    def index_of(self, hook: str, head: int | None) -> tuple[str, Axes]:
        return f"0, {head}", ("query", "key")

    def layers(
        self, side: str, focus: str, head: int | None = None, first: int = 0, last: int | None = None
    ) -> Iterator[Tensor]:
        """Patterns of an attention in the layers `first` to `last`, both included: the mean of the heads, or one `head`
        of each, pos key."""
        for layer in range(first, self.lane(side).config.layers if last is None else last + 1):
            one = HeadOfRun(side, focus, layer, head or 0)
            yield self.mean(one.hook) if head is None else self.pattern(one)


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
    for focus, layer, head in product(kinds_of(lane), range(lane.config.layers), range(lane.config.attention.heads)):
        yield HeadOfRun(lane.side, focus, layer, head)


def first_text(value: Tensor) -> Tensor:
    """batch of 1 ...; a copy."""
    return value[:1].clone()


def row_sums(norms: Tensor) -> Tensor:
    """Sum of each row, pos, at least TINY: an empty row can be divided by it."""
    return norms.sum(-1).clamp(min=TINY)


@torch.no_grad()
def key_lengths(long: LongContext, head: HeadOfRun) -> Tensor:
    """|v W_O| of each key, by which a weight is multiplied; those of all heads of a layer are kept."""
    v, W_O = head.hook.replace("pattern", "v"), writing_rows(long.made.model, *head.place)
    norms = long.cached((v, "moved"), lambda: long.reduce({v: lambda value: value_norms(W_O, value[0])})[v])
    return norms[head.head]


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
        **run_header(trace, lanes, name),
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
        for focus in kinds_of(lane):
            hooks = [f"{lane.prefix}blocks.{layer}.{focus}.pattern" for layer in range(lane.config.layers)]
            arrays[f"patterns.{lane.prefix}{focus}"] = torch.stack([long.overviews[hook] for hook in hooks])
    return arrays


def first_row(pattern: Tensor, lane: Lane, shown: HeadOfRun) -> int:
    """The row to read first: the last where it alone has read everything, else that of the largest weight."""
    if shown.focus == "cross_attn" or lane.config.attention.mask != "full":
        return len(pattern) - 1
    return int(pattern.amax(-1).argmax())


def at_rest(rows: int, columns: int) -> list[tuple[Span, Span]]:
    """The windows of the tiles that show a whole pattern, row by row."""
    return [(down, across) for down in spans(rows) for across in spans(columns)]


def spans(size: int, tile: int = TILE, across: int = ACROSS) -> list[Span]:
    """Divides one axis into spans of equal width, so that tiles of `tile` cells each show it in at most `across`: the
    last one overlaps the one before. With as many cells as there are places, a span has single weights."""
    width = tile
    while size * tile > across * width:
        width *= 2
    starts = [min(first, max(0, size - width)) for first in range(0, size, width)]
    return [(first, min(first + width, size)) for first in starts]


def cut_tile(
    pattern: Tensor, rows: Span, columns: Span, edited: Tensor | None = None, side: int = TILE
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A window as at most `side` x `side` cells: `weight` row column, each the largest of its block and exact, as
    `describe_tile` has it. Of `edited`, 0 where no edit put a weight, comes u8 where any of a block is another, unless
    none of the window is.
    """
    found = tile(pattern, rows, columns, side)
    about, arrays = describe_tile(found, rows, columns)
    if edited is not None:
        high, wide = found.block
        put = peaks(peaks((edited[slice(*rows), slice(*columns)] > 0).to(torch.uint8), -2, high), -1, wide)
        arrays |= {"edited": put} if put.any() else {}
    return about, arrays


def describe_tile(found: Tile, rows: Span, columns: Span) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """`weight`, and `at`, which says which of its block that is, counted row by row; it is left out where a block is
    one weight. A window in which every weight is zero is "empty" and brings neither."""
    high, wide = found.block
    empty = not bool((found.weight != 0).any())  # NaN is another than 0
    about = {"rows": list(rows), "columns": list(columns), "block": [high, wide], "empty": empty}
    at = (found.pos - rows[0]) % high * wide + (found.key - columns[0]) % wide
    more = {} if high * wide == 1 else {"at": at.to(torch.uint8 if high * wide <= 256 else torch.int32)}
    return about, {} if empty else {"weight": found.weight, **more}


def heaviest(pattern: Tensor, row: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Selects of one row, `weights`, the keys with the most, `key` and `weight`; `others` keys share the `rest`."""
    weights = pattern[row].float()
    top = top_keys(weights, LISTED)
    others = int((weights > 0).sum()) - int((top.weight > 0).sum())
    return {"others": others, "rest": float(top.rest)}, {"key": top.key, "weight": top.weight, "weights": weights}
