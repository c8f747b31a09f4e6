"""Attention weights as edges from queries to keys, those that are not small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.recorded_patterns import patterns
from engine.runtime.trace import Trace


@dataclass(frozen=True)
class Edges:
    """Every tensor is edge: whose pattern it stands in, from which query to which key, and its weight."""

    layer: Tensor
    head: Tensor
    query: Tensor
    key: Tensor
    weight: Tensor


def edges(
    trace: Trace,
    heads: Sequence[tuple[int, int]],
    least: float,
    side: str = "",
    crosses: bool = False,
    query: int | None = None,
    key: int | None = None,
) -> Edges:
    """The weights above 0 that are at least `least`, of `heads` (layer, head) one after the other, row by row.

    `query` and `key` keep the edges of one token. Of the first text of the batch.
    """
    if not heads:
        raise ValueError("edges are of at least one (layer, head), got none; name some.")
    found = patterns(trace, side, crosses)
    return join_edges([(layer, head, found[layer][head]) for layer, head in heads], least, query, key)


def join_edges(
    heads: Sequence[tuple[int, int, Tensor]], least: float, query: int | None = None, key: int | None = None
) -> Edges:
    """Joins edges as `edges` does, of patterns (query key), each with its layer and its head."""
    parts = []
    for layer, head, pattern in heads:
        weights = pattern.detach().double().cpu()  # so that `least` is compared as it is said, and not rounded
        kept = (weights >= least) & (weights > 0)
        rows, columns = kept.nonzero().unbind(-1)
        wanted = torch.ones_like(rows, dtype=torch.bool)
        wanted &= True if query is None else rows == query
        wanted &= True if key is None else columns == key
        rows, columns = rows[wanted], columns[wanted]
        whose = [torch.full_like(rows, number) for number in (layer, head)]
        parts.append((*whose, rows, columns, pattern.detach().cpu().float()[rows, columns]))
    return Edges(*(torch.cat(column) for column in zip(*parts, strict=True)))
