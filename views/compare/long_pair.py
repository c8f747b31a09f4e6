"""Two runs on long texts beside one another: what differs, a layer, a head or a place at a time.

Patterns of a layer are there while they are needed; what is kept of them is a difference or a few of their rows.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor

from engine.analysis.alignment import Alignment, Group
from engine.analysis.compare_long import difference, layer_changes, sample_rows, similarity, spread_groups
from engine.analysis.overview_cache import glances
from engine.analysis.predictions import predictions
from engine.analysis.summarised_run import rerun_reduced
from views.attention.long import HeadOfRun, LongContext
from views.compare.pair import (
    LISTED,
    Attention,
    Compared,
    Shown,
    alike_in_shape,
    candidates,
    prediction_arrays,
    prediction_places,
)
from views.what_if.effects_long import logits_at as saying_at

CELLS = 32  # a side of a thumbnail
ROWS = 64  # by which heads are compared, each with each


def long_of(shown: Shown) -> LongContext:
    assert shown.long is not None
    return shown.long


def cache_pair(pair: Compared, what: tuple[Hashable, ...], make: Any) -> tuple[Tensor, ...]:
    """Caches a value made of both runs, in the store of their patterns."""
    second = long_of(pair.second)
    return glances.cached(long_of(pair.first).made, (second.digest, *second.made.key, *what), make)


def says(pair: Compared, number: int) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Predictions of both runs at a group of tokens, and their names. Raises ValueError where they predict nothing."""
    header = prediction_places(pair)
    if header["sentence"]:
        raise ValueError(header["sentence"])
    places = [slice(None)] * 2
    if not header["once"]:
        if not 0 <= number < len(header["groups"]):
            raise ValueError(f"expected one of {len(header['groups'])} groups of tokens, got {number}.")
        places = [slice(side[-1], side[-1] + 1) for side in header["groups"][number][:2]]
    runs = zip((pair.first, pair.second), places, strict=True)
    logits = [saying_at(long_of(shown), place)["logits"] for shown, place in runs]
    rows = logits if header["once"] else [value[0] for value in logits]
    found = predictions(rows[0], rows[1], [(0, 0)], LISTED, pair.first.checkpoint.model.config.link)
    return candidates(pair, found.ids), prediction_arrays(found)


def head_difference(pair: Compared, number: int, first: HeadOfRun, second: HeadOfRun) -> Tensor:
    """The second run's head less the first's, by the entries of both texts; NaN where one lacks the token."""

    def make() -> tuple[Tensor]:
        mine, theirs = long_of(pair.first).pattern(first), long_of(pair.second).pattern(second)
        return (difference(mine.float(), theirs.float(), *align_sides(pair, number)),)

    return cache_pair(pair, ("difference", first, second), make)[0]


def align_sides(pair: Compared, number: int) -> tuple[Alignment, Alignment]:
    """Alignments of the queries and of the keys."""
    one, other = pair.attentions[number]
    return pair.alignment(one.side, other.side), pair.alignment(one.keys(), other.keys())


def layer_change(pair: Compared, number: int, layer: int) -> dict[str, Tensor]:
    """Change of one layer between both runs: `change` (head), and `seen` f16 head row column, what of each head
    differs; neither where heads have no counterpart by place. Caches the rows by which heads are compared."""
    one, other = pair.attentions[number]
    if not alike_in_shape(pair, one, other):
        for shown, attention in ((pair.first, one), (pair.second, other)):
            if layer < shown.lane(attention.side).config.layers:
                some_rows(pair, number, shown, attention, layer)
        return {}

    def make() -> tuple[Tensor, Tensor]:
        patterns = layer_of(pair.first, one, layer), layer_of(pair.second, other, layer)
        change, seen = layer_changes(*patterns, *align_sides(pair, number), CELLS)
        for shown, attention, pattern in zip((pair.first, pair.second), (one, other), patterns, strict=True):
            some_rows(pair, number, shown, attention, layer, pattern)  # while they are here
        return change, seen.half()

    change, seen = cache_pair(pair, ("change", one.key, layer), make)
    return {"change": change, "seen": seen}


def layer_of(shown: Shown, attention: Attention, layer: int) -> Tensor:
    """All heads of a layer, head pos key."""
    made, hook = long_of(shown).made, attention.head(layer, 0).hook
    seen = rerun_reduced(made.model, made.read, {hook: first_text}, shown.trace, made.edits, target=made.target)
    return seen[hook].float()


def first_text(pattern: Tensor) -> Tensor:
    return pattern[0].clone()


def compared_rows(pair: Compared, number: int) -> tuple[list[Group], int]:
    """Groups by whose rows heads are compared, each with each, and how many count."""
    return spread_groups(align_sides(pair, number)[0], ROWS)


def some_rows(
    pair: Compared, number: int, shown: Shown, attention: Attention, layer: int, pattern: Tensor | None = None
) -> Tensor:
    """The compared rows of a layer of one of the two runs, head query key+1."""
    mine = shown is pair.first
    groups, (_, keys) = compared_rows(pair, number)[0], align_sides(pair, number)
    rows, columns = ((one.first if mine else one.second for one in groups), keys.first if mine else keys.second)

    def make() -> tuple[Tensor]:
        found = layer_of(shown, attention, layer) if pattern is None else pattern
        return (sample_rows(found, list(rows), columns),)

    return cache_pair(pair, ("rows", mine, attention.key, layer), make)[0]


def alike(pair: Compared, number: int) -> tuple[Tensor, int, int]:
    """head head: every head of the first run by every one of the second; over how many rows of how many."""
    one, other = pair.attentions[number]
    groups, count = compared_rows(pair, number)

    def make() -> tuple[Tensor]:
        rows = []
        for shown, attention in ((pair.first, one), (pair.second, other)):
            layers = range(shown.lane(attention.side).config.layers)
            rows.append(torch.cat([some_rows(pair, number, shown, attention, layer) for layer in layers]))
        return (similarity(rows[0], rows[1]),)

    return cache_pair(pair, ("alike", one.key), make)[0], len(groups), count
