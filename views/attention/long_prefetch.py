"""What a file of a long text answers without a server: one head down to single weights, the others at rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any

from views.attention.long import TILE, Focus, Head, Long, at_rest
from views.walkthrough.walkthrough import Lane

Query = dict[str, Any]
Span = tuple[int, int]


def ahead_long(long: Long, looked: Head, row: int) -> Iterator[Query]:
    """Questions of assets/views/attention/long.js in the order in which they are worth their room: of the head that is
    `looked` at every weight and what they move, then of each head its `row` and its tiles at rest.

    The view makes all other rows and tiles of the looked head from its weights.
    """
    rows, keys = sizes(long, looked)
    yield from tiles(long, looked, product(windows(rows), windows(keys)))
    yield asked(long, looked, ask="moved")
    for head in heads(long):
        rows, keys = sizes(long, head)
        yield from tiles(long, head, at_rest(rows, keys))
        if head.side == looked.side:
            yield asked(long, head, ask="row", pos=min(row, rows - 1))


def tiles(long: Long, head: Head, found: Iterable[tuple[Span, Span]]) -> Iterator[Query]:
    for rows, columns in found:
        yield asked(long, head, ask="tile", rows=list(rows), columns=list(columns))


def asked(long: Long, head: Head, **more: Any) -> Query:
    where = {"side": head.side, "focus": head.focus, "layer": head.layer, "head": head.head}
    return {"trace": long.run.digest, **where, **more}


def windows(size: int) -> list[Span]:
    """The tiles of single weights along an axis: the last one reaches back."""
    starts = dict.fromkeys(min(first, max(0, size - TILE)) for first in range(0, size, TILE))
    return [(first, min(first + TILE, size)) for first in starts]


def sizes(long: Long, head: Head) -> Span:
    """Rows and keys of a head's pattern."""
    lanes = long.run.lanes
    lane = next(lane for lane in lanes if lane.side == head.side)
    source = lanes[0] if head.focus == "cross_attn" else lane
    return len(lane.pieces), len(source.pieces)


def heads(long: Long) -> Iterator[Head]:
    for lane in long.run.lanes:
        yield from of_lane(lane, "attn")
        if lane.config.encoder is not None:
            yield from of_lane(lane, "cross_attn")


def of_lane(lane: Lane, focus: Focus) -> Iterator[Head]:
    for layer, head in product(range(lane.config.layers), range(lane.config.attention.heads)):
        yield Head(lane.side, focus, layer, head)
