"""How alike two runs are, of one model or of two: their heads, each with each, and their residual streams.

Both are compared at the tokens that belong together (`engine.analysis.alignment`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.alignment import Alignment, Group, mean_rows, sum_groups
from engine.analysis.tiles import Tile, Window, tile
from engine.plurals import count_words
from engine.runtime.trace import Trace

Groups = Sequence[tuple[int, ...]]
ELEMENTS = 2**24  # of a difference that is held at a time


@dataclass(frozen=True)
class PatternPair:
    """The patterns of two runs, each one a layer, head pos key, and which of their queries and keys belong together."""

    first: list[Tensor]
    second: list[Tensor]
    queries: Alignment
    keys: Alignment

    def rows(self, counted: bool = True) -> tuple[Tensor, Tensor]:
        """Every head's rows in the groups of keys of both runs, layer-head query key.

        What a row gives to tokens that the other run does not have stands at the end (`pad_unshared`). `counted` leaves
        out the groups that count as no row.
        """
        groups = [group for group in self.queries.groups if not counted or group.counts_as_row]
        first = torch.cat([group_shares(one, [g.first for g in groups], self.keys.first) for one in self.first])
        second = torch.cat([group_shares(one, [g.second for g in groups], self.keys.second) for one in self.second])
        return pad_unshared(first, second)


def group_shares(pattern: Tensor, queries: Groups, keys: Groups) -> Tensor:
    """head query key+1, of a layer's pattern: what the groups of keys are given, last what is given to none of them."""
    taken = {i for group in keys for i in group}
    left = tuple(i for i in range(pattern.shape[-1]) if i not in taken)
    rows = mean_rows(pattern, queries)
    return torch.cat([sum_groups(rows, keys, -1), sum_groups(rows, [left], -1)], -1)


def pad_unshared(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """The `group_shares` of two runs with what each gives to tokens that the other does not have in a place of its
    own."""
    nothing, other = torch.zeros_like(first[..., :1]), torch.zeros_like(second[..., :1])
    return torch.cat([first, nothing], -1), torch.cat([second[..., :-1], other, second[..., -1:]], -1)


@dataclass(frozen=True)
class Similarity:
    """`heads`: the first run's, layer by layer, by the second's; 1 = the same attention, 0 = to other tokens
    altogether, NaN where no row counts. `rows` is how many rows of the texts it is a mean of."""

    heads: Tensor
    rows: int


def head_similarity(texts: Iterable[PatternPair]) -> Similarity:
    """1 - the total variation distance between the rows of two heads, the mean over the rows of all texts.

    Attention to a token that the other text does not have is attention to another token. Each text's first position
    is left out.
    """
    total: Tensor | None = None
    count = 0
    for text in texts:
        first, second = text.rows()
        summed = variations(first, second)
        total = summed if total is None else total + summed
        count += first.shape[1]
    if total is None:
        raise ValueError("heads are compared on one text at least, got none.")
    return Similarity(similarity_of(total, count), count)


def similarity(first: Tensor, second: Tensor) -> Tensor:
    """head head, of the `group_shares` of some rows of two runs: `head_similarity` over these."""
    return similarity_of(variations(*pad_unshared(first, second)), first.shape[1])


def similarity_of(total: Tensor, rows: int) -> Tensor:
    return 1 - total / rows if rows else torch.full_like(total, torch.nan)


def spread_groups(queries: Alignment, most: int) -> tuple[list[Group], int]:
    """Chooses at most so many of the groups whose rows count, evenly apart, the last among them; and how many count."""
    groups = [group for group in queries.groups if group.counts_as_row]
    step = max(1, -(-len(groups) // most))
    return groups[::-1][::step][::-1], len(groups)


def variations(first: Tensor, second: Tensor) -> Tensor:
    """head head, of head query key each: the total variation distance between rows, summed over the queries."""
    total = first.new_zeros(len(first), len(second))
    at_once = max(1, ELEMENTS // max(1, len(first) * len(second) * first.shape[-1]))
    for start in range(0, first.shape[1], at_once):
        here = slice(start, start + at_once)
        rows = [one[:, here].transpose(0, 1).contiguous() for one in (first, second)]
        total += torch.cdist(rows[0], rows[1], p=1).sum(0) / 2
    return total


def head_changes(pair: PatternPair) -> Tensor:
    """layer head: the total variation distance between a head's rows in both runs, the mean over those that count.

    Raises ValueError where the runs have other numbers of layers or heads.
    """
    shapes = [[len(layer) for layer in one] for one in (pair.first, pair.second)]
    if shapes[0] != shapes[1]:
        got = f"{shapes[0]} and {shapes[1]}"
        raise ValueError(f"head by head, both runs must have the same heads in each layer, got {got}.")
    first, second = pair.rows()
    return ((first - second).abs().sum(-1) / 2).mean(-1).view(len(shapes[0]), -1)


def layer_changes(
    first: Tensor, second: Tensor, queries: Alignment, keys: Alignment, cells: int
) -> tuple[Tensor, Tensor]:
    """Change of one layer between both runs (head pos key): `head_changes`, head; and |difference| of each head by
    `entries`, head row column, at most `cells` along each side, a cell the largest of its block, 0 where it has
    none."""
    counts = torch.tensor([group.counts_as_row for group in queries.groups], dtype=torch.bool)
    changes, seen = [], []
    for one, other in zip(first, second, strict=True):
        moved = pattern_difference(one, other, queries, keys)
        changes.append((moved.abs().sum(-1) / 2)[counts].mean())
        whole = spread_to_tokens(moved[:, :-2], queries, keys)
        rows, columns = ((0, length) for length in whole.shape)
        seen.append(largest_differences(whole, rows, columns, cells).weight.abs().nan_to_num())
    return torch.stack(changes), torch.stack(seen)


def difference(first: Tensor, second: Tensor, queries: Alignment, keys: Alignment) -> Tensor:
    """The second pattern (pos key) less the first, by `entries`; NaN where one of the texts has no such token."""
    return spread_to_tokens(pattern_difference(first, second, queries, keys)[:, :-2], queries, keys)


def pattern_difference(first: Tensor, second: Tensor, queries: Alignment, keys: Alignment) -> Tensor:
    """query key+2, by the groups of both texts, last what either gives to tokens that the other lacks."""
    before, after = PatternPair([first[None]], [second[None]], queries, keys).rows(counted=False)
    return (after - before)[0]


def spread_to_tokens(differences: Tensor, queries: Alignment, keys: Alignment) -> Tensor:
    """Spreads differences over `entries`; NaN where one of the texts has no such token."""
    (rows, down), (columns, across) = entries(queries), entries(keys)
    found = differences.new_full((down, across), torch.nan)
    found[rows[:, None], columns] = differences
    return found


def entries(alignment: Alignment) -> tuple[Tensor, int]:
    """Both texts in one order, tokens that belong together as one entry: the entry of each group, and how many
    entries there are. Between two groups the first text's tokens stand before the second's."""
    places: list[int] = []
    at = i = j = 0
    for group in alignment.groups:
        at += group.first[0] - i + group.second[0] - j
        places.append(at)
        at, i, j = at + 1, group.first[-1] + 1, group.second[-1] + 1
    first, second = alignment.lengths
    return torch.tensor(places, dtype=torch.long), at + first - i + second - j


def largest_differences(difference: Tensor, rows: Window, columns: Window, side: int) -> Tile:
    """A window of a difference in at most `side` cells along each: the element of each block that is furthest from
    zero, with its sign; NaN where a block has none. Refuses what `tile` refuses."""
    found = tile(difference.abs().nan_to_num(nan=-1.0), rows, columns, side)
    return Tile(difference[found.pos, found.key], found.pos, found.key, found.block)


@dataclass(frozen=True)
class Streams:
    """Distance between two residual streams: into the first block, then behind each, layer group.

    `relative` is |second - first| / |first|, `cosine` that of the angle between them. NaN for a group of more tokens
    than one.
    """

    relative: Tensor
    cosine: Tensor


def stream_distance(first: Trace, second: Trace, aligned: Alignment, sides: tuple[str, str] = ("", "")) -> Streams:
    """Distance between two stacks of one width and depth, by their names in `sides`. Raises ValueError for any
    others."""
    old, new = (stream(trace, side) for trace, side in zip((first, second), sides, strict=True))
    if (len(old), old.shape[-1]) != (len(new), new.shape[-1]):
        raise ValueError(
            "residual streams are compared in models of one depth and width, got "
            f"{count_words(len(old) - 1, 'layer')} of {old.shape[-1]} and {len(new) - 1} of {new.shape[-1]}."
        )
    single = [len(group.first) == len(group.second) == 1 for group in aligned.groups]
    old = old[:, [group.first[0] for group in aligned.groups]]
    new = new[:, [group.second[0] for group in aligned.groups]]
    lengths = old.norm(dim=-1), new.norm(dim=-1)
    moved = (new - old).norm(dim=-1)
    relative = torch.where(moved == 0, 0.0, moved / lengths[0])
    cosine = (old * new).sum(-1) / (lengths[0] * lengths[1])
    alone = ~torch.tensor(single, dtype=torch.bool)
    return Streams(relative.masked_fill(alone, torch.nan), cosine.clamp(-1, 1).masked_fill(alone, torch.nan))


def stream(trace: Trace, side: str) -> Tensor:
    """layer pos d_model of the first text, in float64."""
    before = trace[f"{side}.blocks.0.resid_pre" if side else "blocks.0.resid_pre"]
    after = trace.stack(f"{side}.resid_post" if side else "resid_post")
    return torch.cat([before[:1], after[:, 0]]).double()
