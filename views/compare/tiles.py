"""Tiles of a comparison of long texts: how patterns and differences are cut, and what an exported file has of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Any

from engine.analysis.similarity import entries
from views.attention.long import ACROSS, LARGEST_TILE, TILE, spans
from views.attention.long_questions import about_head, ask_tiles
from views.compare.differences import align_sides
from views.compare.pair import ComparedRun, RunPair, shown_in
from views.compare.tables import ComparisonSelection, head_of


def cells_across(shown: Sequence[ComparedRun]) -> int:
    """Cells of a map that is seen whole, along each side: fewer where there are more maps, or more to see in one."""
    sparse = all(lane.config.attention.mask == "causal" for one in shown for lane in one.run.lanes)
    return ACROSS if len(shown) == 2 and sparse else TILE


def tile_sides(pair: RunPair, number: int, across: int) -> list[int]:
    """Tile widths of the first run, of the second and of their difference."""
    sizes = ((*alignment.lengths, entries(alignment)[1]) for alignment in align_sides(pair, number))
    return [tile_width(max(both), across) for both in zip(*sizes, strict=True)]


def tile_width(longest: int, across: int) -> int:
    """Cells of a tile along each side, so that as few as `across` cells ask for show the whole, and none overlap."""
    width = -(-longest * TILE // across)
    while width > LARGEST_TILE:
        width = -(-width // 2)
    return max(width, TILE // 2)


def carry_long(pairs: Sequence[RunPair], looked: ComparisonSelection) -> Iterator[dict[str, Any]]:
    """Yields what the view asks of the selected heads: the overviews and what is predicted at every place, then the
    tiles at closer zoom."""
    having = [pair for pair in pairs if looked.number(pair) is not None]
    cells = cells_across(shown_in(pairs))
    for whole in (True, False):
        yield from chain.from_iterable(own_tiles(pair, looked, whole, cells) for pair in having)
        yield from chain.from_iterable(differences(pair, looked, whole, cells) for pair in having)
        if whole:
            yield from chain.from_iterable(of_all(pair, looked) for pair in having)


def own_tiles(pair: RunPair, looked: ComparisonSelection, whole: bool, across: int) -> Iterator[dict[str, Any]]:
    sides = tile_sides(pair, looked.attention_index(pair), across)
    for shown, side in zip((pair.first, pair.second), sides, strict=False):
        head = head_of(pair, looked, shown.letter)
        down, over = (spans(size, side, side * across // TILE if whole else size) for size in shown.run.size(head))
        yield from ask_tiles(shown.run, head, product(down, over), cells=side)


def differences(pair: RunPair, looked: ComparisonSelection, whole: bool, across: int) -> Iterator[dict[str, Any]]:
    number, letters = looked.attention_index(pair), ("A", pair.second.letter)
    places = [list(looked.heads[letter]) for letter in letters]
    side = tile_sides(pair, number, across)[2]
    sizes = (entries(one)[1] for one in align_sides(pair, number))
    for rows, columns in product(*(spans(size, side, side * across // TILE if whole else size) for size in sizes)):
        more = {"heads": places, "rows": list(rows), "columns": list(columns), "cells": side}
        yield about_pair(pair, ask="difference", attention=looked.attention, **more)


def of_all(pair: RunPair, looked: ComparisonSelection) -> Iterator[dict[str, Any]]:
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
    for shown, rows in ((pair.first, group.first), (pair.second, group.second)):
        for row in rows:
            yield about_head(shown.run, head_of(pair, looked, shown.letter), ask="row", pos=row)


def about_pair(pair: RunPair, /, **query: Any) -> dict[str, Any]:
    return {"trace": pair.digest, **query}
