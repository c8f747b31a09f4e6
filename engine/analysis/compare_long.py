"""Two runs on long texts set beside one another, as `engine.analysis.similarity` does it of short ones.

One layer's patterns of both are there at a time, and what belongs together is picked out of them, not multiplied out.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.analysis.alignment import Alignment, Group
from engine.analysis.tiles import Tile, Window, tile

Groups = Sequence[tuple[int, ...]]


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


def group_attention(pattern: Tensor, queries: Groups, keys: Groups) -> tuple[Tensor, Tensor]:
    """Attention from group to group, query key, of a pattern (pos key): as `alignment.shared`. And what each row gives
    to the tokens of no group, query."""
    rows = from_groups(pattern, queries)
    taken = torch.tensor([i for group in keys for i in group], dtype=torch.long)
    left = torch.ones(pattern.shape[-1], dtype=torch.bool).index_fill(0, taken, False)
    given = rows[:, taken]
    if any(len(group) > 1 for group in keys):
        owners = torch.tensor([number for number, group in enumerate(keys) for _ in group])
        given = rows.new_zeros(len(rows), len(keys)).index_add_(1, owners, given)
    return given, rows[:, left].sum(-1)


def from_groups(pattern: Tensor, queries: Groups) -> Tensor:
    """The mean row of each group, query key."""
    rows = pattern[torch.tensor([i for group in queries for i in group], dtype=torch.long)]
    sizes = torch.tensor([len(group) for group in queries])
    if not (sizes > 1).any():
        return rows
    owners = torch.repeat_interleave(torch.arange(len(queries)), sizes)
    return pattern.new_zeros(len(queries), pattern.shape[-1]).index_add_(0, owners, rows) / sizes[:, None]


def counts_as_row(group: Group) -> bool:
    """Not with a text's first position, which in a causal model has no choice."""
    return 0 not in group.first and 0 not in group.second


def spread_groups(queries: Alignment, most: int) -> tuple[list[Group], int]:
    """Chooses at most so many of the groups whose rows count, evenly apart, the last among them; and how many count."""
    groups = [group for group in queries.groups if counts_as_row(group)]
    step = max(1, -(-len(groups) // most))
    return groups[::-1][::step][::-1], len(groups)


def pattern_difference(first: Tensor, second: Tensor, queries: Alignment, keys: Alignment) -> tuple[Tensor, Tensor]:
    """Difference of two patterns (pos key), by their groups: the second less the first, query key, and what the rows
    of both together give to tokens that the other text lacks, query."""
    after, apart = group_attention(second, queries.second, keys.second)
    before, alone = group_attention(first, queries.first, keys.first)
    return after - before, alone + apart


def spread_to_tokens(differences: Tensor, queries: Alignment, keys: Alignment) -> Tensor:
    """Spreads differences over `entries`; NaN where one of the texts has no such token."""
    (rows, down), (columns, across) = entries(queries), entries(keys)
    found = differences.new_full((down, across), torch.nan)
    found[rows[:, None], columns] = differences
    return found


def difference(first: Tensor, second: Tensor, queries: Alignment, keys: Alignment) -> Tensor:
    """The second pattern (pos key) less the first, by `entries`; NaN where one of the texts has no such token."""
    return spread_to_tokens(pattern_difference(first, second, queries, keys)[0], queries, keys)


def largest_differences(difference: Tensor, rows: Window, columns: Window, side: int) -> Tile:
    """A window of a difference in at most `side` cells along each: the element of each block that is furthest from
    zero, with its sign; NaN where a block has none. Refuses what `tile` refuses."""
    window = difference[slice(*rows), slice(*columns)]
    inside = all(0 <= a < b <= size for (a, b), size in zip((rows, columns), difference.shape, strict=True))
    if not inside:
        return tile(difference, rows, columns, side)  # which says why
    found = tile(window.abs().nan_to_num(nan=-1.0), (0, len(window)), (0, window.shape[1]), side)
    return Tile(window[found.pos, found.key], found.pos + rows[0], found.key + columns[0], found.block)


def layer_changes(
    first: Tensor, second: Tensor, queries: Alignment, keys: Alignment, cells: int
) -> tuple[Tensor, Tensor]:
    """Change of one layer between both runs (head pos key): how much of a row's attention goes elsewhere, head, the
    mean over the rows that count, as `head_changes`; and |difference| of each head by `entries`, head row column, at
    most `cells` along each side, a cell the largest of its block."""
    counts = torch.tensor([counts_as_row(group) for group in queries.groups], dtype=torch.bool)
    changes, seen = [], []
    for one, other in zip(first, second, strict=True):
        differences, elsewhere = pattern_difference(one, other, queries, keys)
        changes.append(((differences.abs().sum(-1) + elsewhere) / 2)[counts].mean())
        seen.append(small(spread_to_tokens(differences, queries, keys), cells))
    return torch.stack(changes), torch.stack(seen)


def small(difference: Tensor, cells: int) -> Tensor:
    """The largest |difference| of each block; 0 where a block has none."""
    size = [(0, length) for length in difference.shape]
    return largest_differences(difference, size[0], size[1], cells).weight.abs().nan_to_num()


def sample_rows(pattern: Tensor, queries: Groups, keys: Groups) -> Tensor:
    """head query key+1: the rows of a layer (head pos key) that heads are compared by, last what tokens of no group
    are given."""
    rows = (group_attention(head, queries, keys) for head in pattern)
    return torch.stack([torch.cat([given, left[:, None]], -1) for given, left in rows])


def similarity(first: Tensor, second: Tensor) -> Tensor:
    """head head, of `sampled` rows of two runs: 1 - the total variation distance, the mean over the rows."""
    left, right = first[..., -1], second[..., -1]  # to a token that the other text lacks, and so elsewhere in any case
    total = first.new_zeros(len(first), len(second))
    for row in range(first.shape[1]):
        near = torch.cdist(first[:, row, :-1], second[:, row, :-1], p=1)
        total += (near + left[:, row, None] + right[None, :, row]) / 2
    return 1 - total / first.shape[1] if first.shape[1] else torch.full_like(total, torch.nan)

