"""What the page Attention asks of a text too long to be sent whole: a tile, a row, a window, or many heads at once.

A question that a short text has too has its name and parameters. What is kept of each layer is the mean of its heads,
so that no more than one layer's patterns are in memory at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal, NoReturn

import torch
from torch import Tensor

from engine.analysis.averages import over_texts
from engine.analysis.flow import crossed_flow_from, flow_from
from engine.analysis.heads import scores
from engine.analysis.overview_cache import glances
from engine.analysis.points import HeadPoints
from engine.analysis.positional_long import PositionalSteps
from engine.analysis.rollout import roll_out, rolled_both
from engine.analysis.summarised_run import rerun_reduced
from engine.analysis.tiles import overview
from engine.inputs.samples import sample_runs
from engine.runtime import library
from views.attention.long import (
    LARGEST_TILE,
    TILE,
    TINY,
    HeadOfRun,
    LongContext,
    at_rest,
    cut_tile,
    heads_of,
    heaviest,
    key_lengths,
    row_sums,
)
from views.attention.long import Focus as FocusName
from views.attention.long_window import SEVERAL, column_of, points_of, window_of
from views.attention.questions import (
    ATTENTION,
    CROSSES,
    FEWEST,
    LONGEST,
    PAIRS,
    TEXTS,
    How,
    cached_copying,
    describe_column,
    describe_points,
    table_points,
    table_texts,
)
from views.core.lanes import Lane
from views.core.questions import Answer, Axes, Focus, Head, Key, Layer, Pos, Query, Registry, Side
from views.core.table_files import Table

Span = tuple[int, int]

LONG = Registry()
CELLS: Axes = ("row", "column")
UNSCORED = "Not every head of this text has its positional share yet; choose that score again, and stay until it has."


def refuse_script(long: LongContext, **_: Any) -> NoReturn:
    """A script would have to hold what the page asks for piece by piece."""
    raise ValueError("Of a long text there are lines of Python for the weights of one head; choose a cell of the map.")


def question(name: str, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return LONG.question(name, make_script=refuse_script, **options)


for shared in ("ov", "qk"):  # of the weights and the tokens, however many there are
    LONG.questions[shared] = replace(ATTENTION.questions[shared], carry=None, make_script=refuse_script)


# --- one head ---


@question("tile", returns={"weight": CELLS, "at": CELLS, "edited": CELLS})
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
    shown = long.place(layer, head, side, focus)
    header, arrays = cut_tile(long.lengths(shown, shows), rows, columns, long.edited_cells(shown), cells)
    return Answer(arrays, header)


@question("moved", returns={"moved": ("key",)})
def ask_moved(long: LongContext, side: Side, layer: Layer, head: Head, focus: Focus = "attn") -> Answer:
    """`moved` (key) and `total` (pos): a length is the weight times the one, a share that divided by the other.

    `max` is the largest length; an overview of each kind has the largest of every block, 255 = that length, or all.
    """
    shown = long.place(layer, head, side, focus)
    norms = long.lengths(shown)
    totals, most = row_sums(norms), float(norms.max())
    arrays = {"moved": key_lengths(long, shown), "total": totals}
    arrays["overview.length"] = overview(norms / max(most, TINY), long.cells)
    arrays["overview.share"] = overview(norms / totals[:, None], long.cells)
    return Answer(arrays, {"max": most})


@question("row", returns={"weights": ("key",)})
def ask_row(long: LongContext, side: Side, layer: Layer, head: Head, pos: Pos, focus: Focus = "attn") -> Answer:
    """The weights of one row, and those of its keys that have the most."""
    header, arrays = heaviest(long.pattern(long.place(layer, head, side, focus)), pos)
    return Answer(arrays, header)


def describe_long_column(
    long: LongContext, found: Any, side: str, layer: int, head: int, key: int, focus: str
) -> Mapping[str, str]:
    """The sentence that a short text has of the same column."""
    return describe_column(long, column_of(long, long.place(layer, head, side, focus), key), side, key, focus)


@question("column", returns={"weights": ("query",)}, describe=describe_long_column)
def ask_long_column(
    long: LongContext, side: Side, layer: Layer, head: Head, key: Key, focus: Focus = "attn"
) -> Tensor:
    """Weights that every query gives one key."""
    return long.pattern(long.place(layer, head, side, focus))[:, key].float()


@question("window")
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
    others = [long.place(*one, side, focus) for one in beside or ()]
    return window_of(long, long.place(layer, head, side, focus), pos, key, others)


def table_long_points(long: LongContext, layer: int, head: int, side: str, focus: str, how: How) -> Table:
    return table_points(long, layer, head, side, focus, how, ask_long_points)


@question(
    "points", returns={"queries": ("query", "xy"), "keys": ("key", "xy")}, describe=describe_points,
    make_table=table_long_points,
)  # fmt: skip
def ask_long_points(
    long: LongContext, layer: Layer, head: Head, side: Side, focus: Focus = "attn", how: How = "pca"
) -> HeadPoints:
    """Queries and keys of a head in the plane."""
    return points_of(long, long.place(layer, head, side, focus), how)


# --- scores ---


@question("scores")
def ask_long_scores(long: LongContext, side: Side, layer: Layer) -> Answer:
    """The scores of one layer's self-attention, each head, as `engine.analysis.heads.SCORES` defines them."""
    made, lane = long.made, long.lane(side)
    block = f"{lane.prefix}blocks.{layer}.attn."
    wanted = {f"{block}pattern": first_text, f"{block}mask": first_text}
    seen = rerun_reduced(made.model, made.read, wanted, long.trace, made.edits, target=made.target)
    ids = torch.tensor(lane.ids) if lane.ids else None
    found = vars(scores(seen[f"{block}pattern"].float(), ids, seen[f"{block}mask"]))
    return Answer(found | {"copying": cached_copying(long.model, side)[layer]})


def first_text(value: Tensor) -> Tensor:
    return value[0]


@question("positional", returns={"positional": ("layer", "head")})
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


@dataclass(frozen=True)
class Layers:
    """Patterns of one attention of a long text, layer by layer: the mean of the heads, or one `head` of each."""

    long: LongContext
    side: str
    focus: FocusName
    head: int | None = None

    @property
    def lane(self) -> Lane:
        return self.long.lane(self.side)

    def layer(self, layer: int) -> Tensor:
        """pos key."""
        head = replace(self.long.shown, side=self.side, focus=self.focus, layer=layer, head=self.head or 0)
        if self.head is not None:
            return self.long.pattern(head)
        return glances.mean(self.long.made, head.hook, self.long.cells)

    def between(self, first: int, last: int) -> Iterator[Tensor]:
        """Patterns of the layers `first` to `last`, both included."""
        return map(self.layer, range(first, last + 1))

    def all(self) -> Iterator[Tensor]:
        return self.between(0, self.lane.config.layers - 1)

    def other_attention(self, focus: FocusName) -> Layers:
        """The other attention of the same stack."""
        return Layers(self.long, self.side, focus, self.head)

    def cache(self, what: tuple[object, ...], make: Callable[[], Tensor]) -> Tensor:
        return glances.cached(self.long.made, (self.side, self.focus, self.head, *what), lambda: (make(),))[0]


@question("text_average", returns={"pattern": PAIRS, "count": ("query",)}, make_table=table_texts)
def ask_long_text_average(
    long: LongContext, side: Side, layer: Layer, head: Head, focus: Focus = "attn"
) -> dict[str, Tensor]:
    """Averages the pattern over other texts, and so as long as these are; all heads are kept: they come together."""

    def average() -> tuple[Tensor, Tensor]:
        traces = sample_runs(long.checkpoint, TEXTS, LONGEST, long.trace.edits, [f"*{focus}.pattern"])
        found = over_texts(traces, FEWEST, side, focus == CROSSES)
        return found.pattern, found.texts

    pattern, texts = glances.cached(long.made, ("sentences", side, focus), average)
    return {"pattern": pattern[layer, head], "count": texts.int()}


@question("average", returns={"line": ("line",)})
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
    layers = layers_of(long, side, focus, head if alone and over == "layers" else None)
    return line_of(layers.layer(layer) if over == "heads" else mean(layers), pos, key)


@question("rollout", returns={"line": ("line",)})
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
    return line_of(rolled_out(layers_of(long, side, focus, head), first, last), pos, key)


@question("flow", returns={"flow": ("key",)})
def ask_long_flow(long: LongContext, side: Side, pos: Pos, focus: Focus = "attn") -> Tensor:
    """Maximum flow from each input position to one output position (Abnar & Zuidema 2020, section 3)."""
    return flow_of_position(layers_of(long, side, focus), pos)


@question("flows")
def ask_long_flows(long: LongContext, side: Side, focus: Focus = "attn") -> None:
    """Nothing: a long text has too many rows for the flow to all of them."""


def layers_of(long: LongContext, side: str, focus: str, head: int | None = None) -> Layers:
    return Layers(long, side, "cross_attn" if focus == CROSSES else "attn", head)


def line_of(pattern: Tensor, pos: int | None, key: int | None) -> Tensor:
    """The row `pos` or else the column `key` of what is pos key."""
    if pos is not None:
        return pattern[pos]
    if key is None:
        raise ValueError("Unknown request: expected a row, pos, or a column, key. Reload and try again.")
    return pattern[:, key].contiguous()


def mean(layers: Layers) -> Tensor:
    """Over all layers, pos key."""

    def make() -> Tensor:
        total, count = torch.zeros(()), layers.lane.config.layers
        for layer in layers.all():
            total = total + layer / count
        return total

    return layers.cache(("layers",), make)


def rolled_out(layers: Layers, first: int, last: int) -> Tensor:
    """Through the layers `first` to `last`, both included, pos key; of cross-attention to the source's keys."""

    def make() -> Tensor:
        if layers.focus == "attn":
            products = roll_out(layers.between(first, last))
        else:
            encoded = last_of(roll_out(encoder(layers).all()))
            both = zip(layers.other_attention("attn").between(first, last), layers.between(first, last), strict=True)
            products = (source for source, _ in rolled_both(encoded, both))
        return last_of(products).float()

    return layers.cache(("rollout", first, last), make)


def last_of(products: Iterator[Tensor]) -> Tensor:
    return deque(products, maxlen=1)[0]


def encoder(layers: Layers) -> Layers:
    """All heads of the stack that cross-attention reads."""
    return Layers(layers.long, "encoder", "attn")


def flow_of_position(layers: Layers, pos: int) -> Tensor:
    """Attention flow of one position through all layers, to each key."""

    def make() -> Tensor:
        if layers.focus == "attn":
            return flow_from(list(layers.all()), pos)
        own, fetched = layers.other_attention("attn").all(), layers.all()
        return crossed_flow_from(list(encoder(layers).all()), list(own), list(fetched), pos)

    return layers.cache(("flow", pos), make)


# --- a file without a server: one head down to single weights, the others at rest ---


def carry_long(long: LongContext, of: Query, row: int) -> Iterator[dict[str, Any]]:
    """Queries of assets/views/attention/tiled_source.js in the order in which they are worth their room.

    Of the head that is looked at, whose matrix `of` asks for, every weight and what they move, then of each head its
    `row` and its tiles at rest.

    The view makes all other rows and tiles of the looked head from its weights.
    """
    looked = long.named_head(str(of["hook"]), of.get("head")) if of.get("hook") else long.shown
    rows, keys = long.size(looked)
    yield from ask_tiles(long, looked, product(windows(rows), windows(keys)))
    yield about_head(long, looked, ask="moved")
    for head in (head for lane in long.lanes for head in heads_of(lane)):
        rows, keys = long.size(head)
        yield from ask_tiles(long, head, at_rest(rows, keys))
        if head.side == looked.side:
            yield about_head(long, head, ask="row", pos=min(row, rows - 1))


def ask_tiles(
    long: LongContext, head: HeadOfRun, found: Iterable[tuple[Span, Span]], **more: Any
) -> Iterator[dict[str, Any]]:
    for rows, columns in found:
        yield about_head(long, head, ask="tile", rows=list(rows), columns=list(columns), **more)


def about_head(long: LongContext, head: HeadOfRun, **more: Any) -> dict[str, Any]:
    where = {"side": head.side, "focus": head.focus, "layer": head.layer, "head": head.head}
    return {"trace": long.digest, **where, **more}


def windows(size: int) -> list[Span]:
    """The tiles of single weights along an axis: the last one reaches back."""
    starts = dict.fromkeys(min(first, max(0, size - TILE)) for first in range(0, size, TILE))
    return [(first, min(first + TILE, size)) for first in starts]
