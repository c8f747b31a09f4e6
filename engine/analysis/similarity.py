"""How alike two runs are, of one model or of two: their heads, each with each, and their residual streams.

Both are compared at the tokens that belong together (`engine.analysis.alignment`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.alignment import Alignment, shared
from engine.runtime.trace import Trace

ELEMENTS = 2**24  # of a difference that is held at a time


@dataclass(frozen=True)
class Pair:
    """The patterns of two runs, each one a layer, head pos key, and which of their queries and keys belong together."""

    first: list[Tensor]
    second: list[Tensor]
    queries: Alignment
    keys: Alignment

    def rows(self, counted: bool = True) -> tuple[Tensor, Tensor]:
        """Every head's rows in the groups of keys of both runs, layer-head query key.

        What a row gives to tokens that the other run does not have stands at the end, each run's in a place of its
        own. `counted` leaves out each run's first position, which in a causal model has no choice.
        """
        groups = [g for g in self.queries.groups if not counted or (0 not in g.first and 0 not in g.second)]
        first = group_shares([g.first for g in groups], self.keys.first, self.first)
        second = group_shares([g.second for g in groups], self.keys.second, self.second)
        nothing, other = torch.zeros_like(first[..., :1]), torch.zeros_like(second[..., :1])
        return torch.cat([first, nothing], -1), torch.cat([second[..., :-1], other, second[..., -1:]], -1)


def group_shares(queries: list[tuple[int, ...]], keys: tuple[tuple[int, ...], ...], patterns: list[Tensor]) -> Tensor:
    """layer-head query key: what the groups of keys are given, and last what is given to none of them."""
    taken = {i for group in keys for i in group}
    left = tuple(i for i in range(patterns[0].shape[-1]) if i not in taken)
    return torch.cat([shared(pattern, queries, [*keys, left]) for pattern in patterns])


@dataclass(frozen=True)
class Similarity:
    """`heads`: the first run's, layer by layer, by the second's; 1 = the same attention, 0 = to other tokens
    altogether, NaN where no row counts. `rows` is how many rows of the texts it is a mean of."""

    heads: Tensor
    rows: int


def head_similarity(texts: Iterable[Pair]) -> Similarity:
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
    return Similarity(1 - total / count if count else torch.full_like(total, torch.nan), count)


def variations(first: Tensor, second: Tensor) -> Tensor:
    """head head, of head query key each: the total variation distance between rows, summed over the queries."""
    total = first.new_zeros(len(first), len(second))
    at_once = max(1, ELEMENTS // max(1, len(first) * len(second) * first.shape[-1]))
    for start in range(0, first.shape[1], at_once):
        here = slice(start, start + at_once)
        rows = [one[:, here].transpose(0, 1).contiguous() for one in (first, second)]
        total += torch.cdist(rows[0], rows[1], p=1).sum(0) / 2
    return total


def head_changes(pair: Pair) -> Tensor:
    """layer head: the total variation distance between a head's rows in both runs, the mean over those that count.

    Raises ValueError where the runs have other numbers of layers or heads.
    """
    shapes = [[len(layer) for layer in one] for one in (pair.first, pair.second)]
    if shapes[0] != shapes[1]:
        got = f"{shapes[0]} and {shapes[1]}"
        raise ValueError(f"head by head, both runs must have the same heads in each layer, got {got}.")
    first, second = pair.rows()
    return ((first - second).abs().sum(-1) / 2).mean(-1).view(len(shapes[0]), -1)


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
            f"{len(old) - 1} layers of {old.shape[-1]} and {len(new) - 1} of {new.shape[-1]}."
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
