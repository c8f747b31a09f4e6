"""What the page Attention asks of a text too long to be sent whole: a tile, a row, a window, or many heads at once.

A question that a short text answers otherwise has its name and parameters. What is kept of each layer is the mean of
its heads, so that no more than one layer's patterns are in memory at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import product
from typing import Any, Literal

import torch
from torch import Tensor

from engine.analysis.flow import crossed_flow_from, flow_from
from engine.analysis.heads import scores
from engine.analysis.positional import PositionalSteps
from engine.analysis.rollout import roll_out, rolled_both
from engine.analysis.tiles import overview
from engine.runtime import library
from views.attention.long import (
    LARGEST_TILE,
    TILE,
    TINY,
    LongContext,
    Span,
    at_rest,
    cut_tile,
    first_text,
    heads_of,
    heaviest,
    key_lengths,
    row_sums,
    spans,
)
from views.attention.long_window import SEVERAL, column_of, window_of
from views.attention.questions import (
    ATTENTION,
    CROSSES,
    cached_copying,
    describe_column,
)
from views.core.questions import Answer, Axes, Focus, Head, Key, Layer, Pos, Query, Side
from views.core.run_context import HeadOfRun, Run

CELLS: Axes = ("row", "column")
UNSCORED = "Not every head of this text has its positional share yet; choose that score again, and stay until it has."


# --- one head ---


@ATTENTION.question("tile", returns={"weight": CELLS, "at": CELLS, "edited": CELLS})
def ask_tile(
    long: LongContext,
    side: Side,
    layer: Layer,
    head: Head,
    rows: tuple[int, int],
    columns: tuple[int, int],
    focus: Focus = "attn",
    shows: Literal["length", "share"] | None = None,
    cells: int = TILE,
) -> Answer:
    """A window of one head as at most `cells` x `cells` cells, of its weights or of what these move."""
    if not 0 < cells <= LARGEST_TILE:
        raise ValueError(f"a tile has 1 to {LARGEST_TILE} cells along each side, got {cells}.")
    shown = HeadOfRun(side, focus, layer, head)
    header, arrays = cut_tile(long.lengths(shown, shows), rows, columns, long.edited_cells(shown), cells)
    return Answer(arrays, header)


@ATTENTION.question("moved", returns={"moved": ("key",)})
def ask_moved(long: LongContext, side: Side, layer: Layer, head: Head, focus: Focus = "attn") -> Answer:
    """`moved` (key) and `total` (pos): a length is the weight times the one, a share that divided by the other.

    `max` is the largest length; an overview of each kind has the largest of every block, 255 = that length, or all.
    """
    shown = HeadOfRun(side, focus, layer, head)
    norms = long.lengths(shown)
    totals, most = row_sums(norms), float(norms.max())
    arrays = {"moved": key_lengths(long, shown), "total": totals}
    arrays["overview.length"] = overview(norms / max(most, TINY), long.cells)
    arrays["overview.share"] = overview(norms / totals[:, None], long.cells)
    return Answer(arrays, {"max": most})


@ATTENTION.question("row", returns={"weights": ("key",)})
def ask_row(long: LongContext, side: Side, layer: Layer, head: Head, pos: Pos, focus: Focus = "attn") -> Answer:
    """The weights of one row, and those of its keys that have the most."""
    header, arrays = heaviest(long.pattern(HeadOfRun(side, focus, layer, head)), pos)
    return Answer(arrays, header)


def describe_long_column(
    long: LongContext, found: Any, side: str, layer: int, head: int, key: int, focus: str
) -> Mapping[str, str]:
    """The sentence that a short text has of the same column."""
    return describe_column(long, column_of(long, HeadOfRun(side, focus, layer, head), key), side, key, focus)


@ATTENTION.question("column", returns={"weights": ("query",)}, describe=describe_long_column)
def ask_long_column(long: LongContext, side: Side, layer: Layer, head: Head, key: Key, focus: Focus = "attn") -> Tensor:
    """Weights that every query gives one key."""
    return long.pattern(HeadOfRun(side, focus, layer, head))[:, key].float()


@ATTENTION.question("window")
def ask_window(
    long: LongContext,
    side: Side,
    layer: Layer,
    head: Head,
    pos: Pos,
    key: Key | None = None,
    focus: Focus = "attn",
    beside: list[tuple[Layer, Head]] | None = None,
) -> Answer:
    """Every step of some neighbouring rows; `beside` are layer and head of those that are compared with this one."""
    if beside and len(beside) >= SEVERAL:
        raise ValueError(f"beside must be fewer than {SEVERAL} heads, got {len(beside)}.")
    others = [HeadOfRun(side, focus, *one) for one in beside or ()]
    return window_of(long, HeadOfRun(side, focus, layer, head), pos, key, others)


# --- scores ---


@ATTENTION.question("scores")
def ask_long_scores(long: LongContext, side: Side, layer: Layer) -> Answer:
    """The scores of one layer's self-attention, each head, as `engine.analysis.heads.SCORES` defines them."""
    lane = long.lane(side)
    hooks = [f"{lane.prefix}blocks.{layer}.attn.{part}" for part in ("pattern", "mask")]
    seen = long.reduce(dict.fromkeys(hooks, first_text))
    pattern, mask = (seen[hook][0] for hook in hooks)
    found = vars(scores(pattern.float(), torch.tensor(lane.ids) if lane.ids else None, mask))
    return Answer(found | {"copying": cached_copying(long.model, side)[layer]})


@ATTENTION.question("positional", returns={"positional": ("layer", "head")})
def ask_positional(long: LongContext, side: Side, whole: bool = False) -> Answer:
    """Goes one step on: `done` of `steps`, after which `scored` layers have theirs.

    `whole` goes no further: it is for those of all heads, and refused with a sentence until they are known.
    """
    made, shelf = long.made, library.traces.shelf
    known, running = (*made.key, "positional", side), (*made.key, "positional steps", side)
    found: tuple[Tensor, object] | None = shelf.find(known)
    if found is None and whole:
        raise ValueError(UNSCORED)
    if found is not None:
        return Answer({"positional": found[0]}, {"done": 1, "steps": 1, "scored": len(found[0])})
    steps: PositionalSteps | None = shelf.find(running)
    if steps is None:
        steps = PositionalSteps(made.model, made.read, long.trace, made.target, side)
        steps = shelf.keep(running, steps, steps.bytes)
    steps.advance()
    if steps.done == steps.steps:
        shelf.keep(known, (steps.shares, made.model.hooks), steps.shares.nbytes)
        shelf.drop(running)
    progress = {"done": steps.done, "steps": steps.steps, "scored": steps.scored_layers}
    return Answer({"positional": steps.shares.clone()}, progress)


# --- many heads at once, one row or one column at a time ---


@ATTENTION.question("average", returns={"line": ("line",)})
def ask_long_average(
    long: LongContext,
    side: Side,
    over: Literal["heads", "layers"],
    layer: Layer,
    head: Head,
    focus: Focus = "attn",
    alone: bool = False,
    pos: Pos | None = None,
    key: Key | None = None,
) -> Tensor:
    """Mean of the heads of a layer, or of the layers: of all their heads, or of this head `alone`."""
    if over == "heads":
        return line_of(next(long.layers(side, focus, None, layer)), pos, key)
    own, count = head if alone else None, long.lane(side).config.layers

    def mean() -> Tensor:
        return sum((one / count for one in long.layers(side, focus, own)), torch.zeros(()))

    return line_of(long.cached((side, focus, own, "mean"), mean), pos, key)


@ATTENTION.question("rollout", returns={"line": ("line",)})
def ask_long_rollout(
    long: LongContext,
    side: Side,
    first: Layer,
    last: Layer,
    focus: Focus = "attn",
    head: Head | None = None,
    pos: Pos | None = None,
    key: Key | None = None,
) -> Tensor:
    """Share of each input position in each output position (Abnar & Zuidema 2020, section 3)."""
    if first > last:
        raise ValueError(f"a rollout goes upward, got blocks {first + 1} to {last + 1}; exchange the two.")

    def product() -> Tensor:
        layers = long.layers(side, focus, head, first, last)
        if focus != CROSSES:
            return last_of(roll_out(layers)).float()
        encoded = last_of(roll_out(long.layers("encoder", "attn")))
        both = zip(long.layers(side, "attn", head, first, last), layers, strict=True)
        return last_of(rolled_both(encoded, both))[0].float()

    return line_of(long.cached((side, focus, head, "rollout", first, last), product), pos, key)


@ATTENTION.question("flow", returns={"flow": ("key",)})
def ask_long_flow(long: LongContext, side: Side, pos: Pos, focus: Focus = "attn") -> Tensor:
    """Maximum flow from each input position to one output position (Abnar & Zuidema 2020, section 3)."""

    def most() -> Tensor:
        layers = list(long.layers(side, focus))
        if focus != CROSSES:
            return flow_from(layers, pos)
        return crossed_flow_from(list(long.layers("encoder", "attn")), list(long.layers(side, "attn")), layers, pos)

    return long.cached((side, focus, "flow", pos), most)


def line_of(pattern: Tensor, pos: int | None, key: int | None) -> Tensor:
    """The row `pos` or else the column `key` of what is pos key."""
    if pos is not None:
        return pattern[pos]
    if key is None:
        raise ValueError("Unknown request: expected a row, pos, or a column, key. Reload and try again.")
    return pattern[:, key].contiguous()


def last_of(products: Iterator[Any]) -> Any:
    return deque(products, maxlen=1)[0]


# --- a file without a server: one head down to single weights, the others at rest ---


def carry_long(long: LongContext, of: Query, row: int) -> Iterator[dict[str, Any]]:
    """Queries of assets/views/attention/tiled_source.js in the order in which they are worth their room.

    Of the head that is looked at, whose matrix `of` asks for, every weight and what they move, then of each head its
    `row` and its tiles at rest.

    The view makes all other rows and tiles of the looked head from its weights.
    """
    looked = long.named_head(str(of["hook"]), of.get("head")) if of.get("hook") else long.shown
    down, over = (spans(size, across=size) for size in long.size(looked))
    yield from ask_tiles(long, looked, product(down, over))
    yield about_head(long, looked, ask="moved")
    for head in (head for lane in long.lanes for head in heads_of(lane)):
        rows, keys = long.size(head)
        yield from ask_tiles(long, head, at_rest(rows, keys))
        if head.side == looked.side:
            yield about_head(long, head, ask="row", pos=min(row, rows - 1))


def ask_tiles(run: Run, head: HeadOfRun, found: Iterable[tuple[Span, Span]], **more: Any) -> Iterator[dict[str, Any]]:
    for rows, columns in found:
        yield about_head(run, head, ask="tile", rows=list(rows), columns=list(columns), **more)


def about_head(run: Run, head: HeadOfRun, **more: Any) -> dict[str, Any]:
    return {"trace": run.digest, **asdict(head), **more}
