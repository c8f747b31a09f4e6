"""What the page about comparisons draws of texts too long to be sent whole: what belongs together in the runs.

Every number is asked for by assets/views/compare/long.js once it is looked at: a tile, a row, a window, a layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

import torch
from torch import Tensor

from engine.analysis.compare_long import entries, largest_differences
from views.attention.long import ACROSS, LARGEST_TILE, TILE, Head
from views.attention.long_questions import LONG, Span, about_head, ask_tiles
from views.compare.compare import named, side_header, similarity
from views.compare.long_pair import CELLS, aligned, alike, changed, differing, long_of, says, streams, together_long
from views.compare.pair import Compared, Shown
from views.compare.tables import Looked, head_of
from views.core.payload import pack
from views.core.questions import STALE, UNKNOWN, Page, Query


def shown_in(pairs: Sequence[Compared]) -> list[Shown]:
    return [pairs[0].first, *(pair.second for pair in pairs)]


def compare_long(pairs: Sequence[Compared], notes: Mapping[str, Any]) -> bytes:
    """Every pair has the same first run."""
    shown = shown_in(pairs)
    arrays = {f"{one.letter}/picture": one.reading.picture for one in shown if one.reading.picture is not None}
    header = {
        "trace": named(pairs),
        "sides": [side_header(one) for one in shown],
        "pairs": {pair.second.letter: paired(pair, across(shown)) for pair in pairs},
        "tile": TILE,
        "across": across(shown),
        "cells": CELLS,
        **notes,
    }
    return pack(header, arrays)


def across(shown: Sequence[Shown]) -> int:
    """Cells of a map that is seen whole, along each side: fewer where there are more maps, or more to see in one."""
    sparse = all(lane.config.attention.mask == "causal" for one in shown for lane in one.lanes)
    return ACROSS if len(shown) == 2 and sparse else TILE


def paired(pair: Compared, across: int) -> dict[str, Any]:
    """`tiles` are those of the first run, of the second and of their difference, for each attention."""
    found = together_long(pair)
    for number, described in enumerate(found["attentions"]):
        own = [own_tile(pair, number, mine, across) for mine in (True, False)]
        described["tiles"] = [*own, tile_side(pair, number, across)]
    return found


def own_tile(pair: Compared, number: int, mine: bool, across: int) -> int:
    """Of the first run, or of the second."""
    return fitting(max(one.lengths[0 if mine else 1] for one in aligned(pair, number)), across)


def tile_side(pair: Compared, number: int, across: int) -> int:
    """Of a difference, which has the tokens of both texts."""
    return fitting(max(entries(alignment)[1] for alignment in aligned(pair, number)), across)


def fitting(longest: int, across: int) -> int:
    """Cells of a tile along each side, so that as few as `across` cells ask for show the whole, and none overlap."""
    width = -(-longest * TILE // across)
    while width > LARGEST_TILE:
        width = -(-width // 2)
    return max(width, TILE // 2)


def answered_long_comparison(pairs: Sequence[Compared], query: Query) -> bytes:
    """What is asked of a pair, which names both its runs, or what a view of one head asks about its run. Raises
    ValueError with a sentence."""
    found = next((one for one in shown_in(pairs) if long_of(one).digest == query.get("trace")), None)
    if found is None:
        raise ValueError(STALE)
    if "other" not in query:
        return Page((LONG, long_of(found))).answer(query)
    digests = [long_of(pair.second).digest for pair in pairs]
    if query["other"] not in digests or found is not pairs[0].first:
        raise ValueError(STALE)
    return of_pair(pairs[digests.index(query["other"])], query, across(shown_in(pairs)))


def of_pair(pair: Compared, query: Query, across: int) -> bytes:
    match query:
        case {"ask": "says", "group": int(group)}:
            names, arrays = says(pair, group)
            return pack({"names": names}, arrays)
        case {"ask": "similarity", "key": str(key), "over": "texts"}:
            return similarity([pair], pair.second.letter, key, "texts")
    number = next((i for i, (one, _) in enumerate(pair.attentions) if one.key == query.get("key")), None)
    if number is None:
        raise ValueError(UNKNOWN)
    match query:
        case {"ask": "similarity", "over": "here"}:
            found, rows, count = alike(pair, number)
            return pack({"rows": rows, "of": count}, {"similarity": found})
        case {"ask": "streams"} if not pair.attentions[number][0].crosses:
            return pack({}, streams(pair, number))
        case {"ask": "change", "layer": int(layer)}:
            if not 0 <= layer < depth(pair, number):
                raise ValueError(f"layer must be in 0..{depth(pair, number) - 1}, got {layer}.")
            return pack({"layer": layer}, changed(pair, number, layer))
        case {"ask": "difference", "rows": [int(top), int(bottom)], "columns": [int(left), int(right)]}:
            whole = differing(pair, number, *heads(pair, query))
            return pack(*tile_of(whole, (top, bottom), (left, right), tile_side(pair, number, across)))
    raise ValueError(UNKNOWN)


def depth(pair: Compared, number: int) -> int:
    """Of the deeper one of the two."""
    one, other = pair.attentions[number]
    return max(pair.first.lane(one.side).config.layers, pair.second.lane(other.side).config.layers)


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


def heads(pair: Compared, query: Query) -> tuple[Head, Head]:
    """Of both runs the head that is looked at."""
    match query.get("heads"):
        case [[int(layer), int(head)], [int(other), int(its)]]:
            places = {"A": (layer, head), pair.second.letter: (other, its)}
            looked = Looked(str(query["key"]), places, pair.second.letter, ("A", 0, 0))
            return head_of(pair, looked, "A"), head_of(pair, looked, pair.second.letter)
    raise ValueError(UNKNOWN)


def ahead_long_comparison(pairs: Sequence[Compared], looked: Looked) -> Iterator[dict[str, Any]]:
    """What the view asks of the heads that are looked at: everything at rest, what is said at every place, then all
    that is seen nearer by."""
    having = [pair for pair in pairs if looked.number(pair) is not None]
    cells = across(shown_in(pairs))
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
        head, side = head_of(pair, looked, letter), own_tile(pair, looked.at(pair), letter == "A", across)
        seen = side * across // TILE
        down, over = (cut(size, side, whole, seen) for size in long_of(shown).pattern(head).shape)
        yield from ask_tiles(long_of(shown), head, product(down, over), cells=side)


def differences(pair: Compared, looked: Looked, whole: bool, across: int) -> Iterator[dict[str, Any]]:
    number, letters = looked.at(pair), ("A", pair.second.letter)
    places = [list(looked.heads[letter]) for letter in letters]
    side = tile_side(pair, number, across)
    seen = side * across // TILE
    down, over = (cut(entries(one)[1], side, whole, seen) for one in aligned(pair, number))
    for rows, columns in product(down, over):
        more = {"heads": places, "rows": list(rows), "columns": list(columns)}
        yield asked(pair, ask="difference", key=looked.attention, **more)


def of_all(pair: Compared, looked: Looked) -> Iterator[dict[str, Any]]:
    """Of every head, and of all places."""
    one, other = pair.attentions[looked.at(pair)]
    if not one.crosses:
        yield asked(pair, ask="streams", key=one.key)
    yield asked(pair, ask="similarity", pair=pair.second.letter, key=one.key, over="here")
    for layer in range(depth(pair, looked.at(pair))):
        yield asked(pair, ask="change", key=one.key, layer=layer)
    met = looked.met(pair)
    if met is None:
        return
    yield asked(pair, ask="says", group=met[0])
    group = aligned(pair, looked.at(pair))[0].groups[met[0]]
    for letter, shown, rows in (("A", pair.first, group.first), (pair.second.letter, pair.second, group.second)):
        for row in rows:
            yield about_head(long_of(shown), head_of(pair, looked, letter), ask="row", pos=row)


def asked(pair: Compared, /, **query: Any) -> dict[str, Any]:
    return {"trace": long_of(pair.first).digest, "other": long_of(pair.second).digest, **query}
