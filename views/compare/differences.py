"""What two runs differ in, a layer, a head or a place at a time, whether they are held whole or in pieces.

Patterns of a layer are there while they are needed; what is kept of them is a difference or a few of their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import torch
from torch import Tensor

from engine.analysis.alignment import Alignment, Group
from engine.analysis.effects import logits_of
from engine.analysis.predictions import predictions
from engine.analysis.similarity import difference, group_shares, layer_changes, similarity, spread_groups
from views.compare.pair import (
    LISTED,
    Attention,
    ComparedRun,
    RunPair,
    alike_in_shape,
    candidates,
    prediction_arrays,
    prediction_places,
)
from views.core.run_context import HeadOfRun, T

CELLS = 32  # a side of a thumbnail
ROWS = 64  # by which heads are compared, each with each


def cache_pair(pair: RunPair, what: tuple[Hashable, ...], make: Callable[[], T]) -> T:
    """Caches a value made of both runs with the first."""
    return pair.first.run.cached((pair.second.run.key, *what), make)


def says(pair: RunPair, number: int) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Predictions of both runs at a group of tokens, and their names. Raises ValueError where they predict nothing."""
    header = prediction_places(pair)
    if header["sentence"]:
        raise ValueError(header["sentence"])
    if not header["once"] and not 0 <= number < len(header["groups"]):
        raise ValueError(f"expected one of {len(header['groups'])} groups of tokens, got {number}.")
    ends = [None, None] if header["once"] else [side[-1] for side in header["groups"][number][:2]]
    rows = []
    for shown, end in zip((pair.first, pair.second), ends, strict=True):
        at = slice(None) if end is None else slice(end, end + 1)
        rows.append(logits_of(shown.run.logits_at(at), end)[None])
    found = predictions(rows[0], rows[1], [(0, 0)], LISTED, pair.first.run.checkpoint.model.config.link)
    return candidates(pair, found.ids), prediction_arrays(found)


def head_difference(pair: RunPair, number: int, first: HeadOfRun, second: HeadOfRun) -> Tensor:
    """The second run's head less the first's, by the entries of both texts; NaN where one lacks the token."""

    def make() -> Tensor:
        mine, theirs = pair.first.run.pattern(first), pair.second.run.pattern(second)
        return difference(mine.float(), theirs.float(), *align_sides(pair, number))

    return cache_pair(pair, ("difference", first, second), make)


def align_sides(pair: RunPair, number: int) -> tuple[Alignment, Alignment]:
    """Alignments of the queries and of the keys."""
    one, other = pair.attentions[number]
    return pair.alignment(one.side, other.side), pair.alignment(one.keys(), other.keys())


def layer_change(pair: RunPair, number: int, layer: int) -> dict[str, Tensor]:
    """Change of one layer between both runs: `change` (head), and `seen` f16 head row column, what of each head
    differs; neither where heads have no counterpart by place. Caches the rows by which heads are compared."""
    runs = tuple(zip((pair.first, pair.second), pair.attentions[number], strict=True))
    if not alike_in_shape(pair, *pair.attentions[number]):
        for shown, attention in runs:
            if layer < shown.run.lane(attention.side).config.layers:
                some_rows(pair, number, shown, attention, layer)
        return {}

    def make() -> dict[str, Tensor]:
        first, second = (layer_of(shown, attention, layer) for shown, attention in runs)
        change, seen = layer_changes(first, second, *align_sides(pair, number), CELLS)
        for (shown, attention), pattern in zip(runs, (first, second), strict=True):
            some_rows(pair, number, shown, attention, layer, pattern)  # while they are here
        return {"change": change, "seen": seen.half()}

    return cache_pair(pair, ("change", runs[0][1].key, layer), make)


def layer_of(shown: ComparedRun, attention: Attention, layer: int) -> Tensor:
    """All heads of a layer, head pos key."""
    hook = attention.head(layer, 0).hook
    return shown.run.reduce({hook: lambda pattern: pattern[0].clone()})[hook].float()


def compared_rows(pair: RunPair, number: int) -> tuple[list[Group], int]:
    """Groups by whose rows heads are compared, each with each, and how many count."""
    return spread_groups(align_sides(pair, number)[0], ROWS)


def some_rows(
    pair: RunPair, number: int, shown: ComparedRun, attention: Attention, layer: int, pattern: Tensor | None = None
) -> Tensor:
    """The compared rows of a layer of one of the two runs, head query key+1."""
    mine = shown is pair.first
    groups, (_, keys) = compared_rows(pair, number)[0], align_sides(pair, number)
    rows, columns = [one.first if mine else one.second for one in groups], keys.first if mine else keys.second

    def make() -> Tensor:
        return group_shares(layer_of(shown, attention, layer) if pattern is None else pattern, rows, columns)

    return cache_pair(pair, ("rows", mine, attention.key, layer), make)


def alike(pair: RunPair, number: int) -> tuple[Tensor, int, int]:
    """head head: every head of the first run by every one of the second; over how many rows of how many."""
    groups, count = compared_rows(pair, number)

    def make() -> Tensor:
        rows = []
        for shown, attention in zip((pair.first, pair.second), pair.attentions[number], strict=True):
            layers = range(shown.run.lane(attention.side).config.layers)
            rows.append(torch.cat([some_rows(pair, number, shown, attention, layer) for layer in layers]))
        return similarity(rows[0], rows[1])

    return cache_pair(pair, ("alike", pair.attentions[number][0].key), make), len(groups), count
