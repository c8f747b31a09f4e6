"""Tiles of a comparison of long texts: how patterns and differences are cut, and what an exported file has of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any

import torch
from torch import Tensor

from engine.analysis.compare_long import entries, largest_differences
from views.attention.long import ACROSS, LARGEST_TILE, TILE
from views.attention.long_questions import Span, about_head, ask_tiles
from views.compare.long_pair import align_sides, long_of
from views.compare.pair import Compared, Shown, shown_in
from views.compare.tables import Looked, head_of


def cells_across(shown: Sequence[Shown]) -> int:
    """Cells of a map that is seen whole, along each side: fewer where there are more maps, or more to see in one."""
    sparse = all(lane.config.attention.mask == "causal" for one in shown for lane in one.lanes)
    return ACROSS if len(shown) == 2 and sparse else TILE


def tile_sides(pair: Compared, number: int, across: int) -> list[int]:
    """Tile widths of the first run, of the second and of their difference."""
    return [
        own_tile(pair, number, True, across),
        own_tile(pair, number, False, across),
        tile_side(pair, number, across),
    ]


def own_tile(pair: Compared, number: int, mine: bool, across: int) -> int:
    """Tile width of the first run or of the second."""
    return tile_width(max(one.lengths[0 if mine else 1] for one in align_sides(pair, number)), across)


def tile_side(pair: Compared, number: int, across: int) -> int:
    """Tile width of a difference, which has the tokens of both texts."""
    return tile_width(max(entries(alignment)[1] for alignment in align_sides(pair, number)), across)


def tile_width(longest: int, across: int) -> int:
    """Cells of a tile along each side, so that as few as `across` cells ask for show the whole, and none overlap."""
    width = -(-longest * TILE // across)
    while width > LARGEST_TILE:
        width = -(-width // 2)
    return max(width, TILE // 2)


def tile_of(whole: Tensor, rows: Span, columns: Span, side: int) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A window of the difference of two heads as at most `side` x `side` cells: `weight` row column, signed, each the
    element of its block that is furthest from zero, NaN where a block has no tokens that belong together.

    As `views.attention.long.tiled` has it; `max` is the largest |difference| of the whole.
    """
    found = largest_differences(whole, rows, columns, side)
    high, wide = found.block
    empty = not bool((found.weight != 0).any())  # NaN is another than 0
    largest = float(whole.abs().nan_to_num().max()) if whole.numel() else 0.0
    about = {"rows": list(rows), "columns": list(columns), "block": [high, wide], "empty": empty, "max": largest}
    if empty:
        return about, {}
    at = (found.pos - rows[0]) % high * wide + (found.key - columns[0]) % wide
    more = {} if high * wide == 1 else {"at": at.to(torch.uint8 if high * wide <= 256 else torch.int32)}
    return about, {"weight": found.weight, **more}


def carry_long(pairs: Sequence[Compared], looked: Looked) -> Iterator[dict[str, Any]]:
    """Yields what the view asks of the selected heads: the overviews and what is predicted at every place, then the
    tiles at closer zoom."""
    having = [pair for pair in pairs if looked.number(pair) is not None]
    cells = cells_across(shown_in(pairs))
    for whole in (True, False):
        yield from chain.from_iterable(own_tiles(pair, looked, whole, cells) for pair in having)
        yield from chain.from_iterable(differences(pair, looked, whole, cells) for pair in having)
        if whole:
            yield from chain.from_iterable(of_all(pair, looked) for pair in having)


def cut(size: int, tile: int, whole: bool, across: int) -> list[Span]:
    """The tiles along an axis: of the whole at rest, in `across` cells, or of single weights."""
    width = tile
    while whole and size * tile > across * width:
        width *= 2
    starts = dict.fromkeys(min(first, max(0, size - width)) for first in range(0, size, width))
    return [(first, min(first + width, size)) for first in starts]


def own_tiles(pair: Compared, looked: Looked, whole: bool, across: int) -> Iterator[dict[str, Any]]:
    for shown, letter in ((pair.first, "A"), (pair.second, pair.second.letter)):
        head, side = head_of(pair, looked, letter), own_tile(pair, looked.attention_index(pair), letter == "A", across)
        seen = side * across // TILE
        down, over = (cut(size, side, whole, seen) for size in long_of(shown).pattern(head).shape)
        yield from ask_tiles(long_of(shown), head, product(down, over), cells=side)


def differences(pair: Compared, looked: Looked, whole: bool, across: int) -> Iterator[dict[str, Any]]:
    number, letters = looked.attention_index(pair), ("A", pair.second.letter)
    places = [list(looked.heads[letter]) for letter in letters]
    side = tile_side(pair, number, across)
    seen = side * across // TILE
    down, over = (cut(entries(one)[1], side, whole, seen) for one in align_sides(pair, number))
    for rows, columns in product(down, over):
        more = {"heads": places, "rows": list(rows), "columns": list(columns), "cells": side}
        yield about_pair(pair, ask="difference", attention=looked.attention, **more)


def of_all(pair: Compared, looked: Looked) -> Iterator[dict[str, Any]]:
    """Yields the requests about every head and all places."""
    one, other = pair.attentions[looked.attention_index(pair)]
    if not one.crosses:
        yield about_pair(pair, ask="streams", attention=one.key)
    yield about_pair(pair, ask="similarity", attention=one.key, over="here")
    for layer in range(pair.depth(looked.attention_index(pair))):
        yield about_pair(pair, ask="change", attention=one.key, layer=layer)
    met = looked.cell_groups(pair)
    if met is None:
        return
    yield about_pair(pair, ask="says", group=met[0])
    group = align_sides(pair, looked.attention_index(pair))[0].groups[met[0]]
    for letter, shown, rows in (("A", pair.first, group.first), (pair.second.letter, pair.second, group.second)):
        for row in rows:
            yield about_head(long_of(shown), head_of(pair, looked, letter), ask="row", pos=row)


def about_pair(pair: Compared, /, **query: Any) -> dict[str, Any]:
    return {"trace": pair.digest, **query}
