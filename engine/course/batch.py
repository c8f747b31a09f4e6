"""A batch: rows of different length in one tensor, and what the padding does to the shorter ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint, load
from engine.json_text import parse_json
from engine.runtime.batch import batch
from engine.runtime.run import run
from engine.tokenizers import Tokenizer

CPU = torch.device("cpu")
KEEP = ("logits", "blocks.*.attn.pattern")


@lru_cache(maxsize=4)
def open_in_float64(name: str) -> Checkpoint:
    """A shipped checkpoint in float64: in float32 a sum in another order shows in the last places."""
    return load(name, dtype=torch.float64)


def tokenizer_of(name: str) -> Tokenizer:
    found = open_in_float64(name).tokenizer
    assert found is not None
    return found


def fill(rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """ids (batch pos), rows filled with 0 up to the longest, and the padding mask (batch pos), True where a token
    stands."""
    ids, real, _ = batch(rows, CPU)
    return ids, torch.ones_like(ids, dtype=torch.bool) if real is None else real


@dataclass(frozen=True)
class RowComparison:
    """Comparison of one row alone and in a batch. `alone` and `together` are logits, pos vocab, at its own tokens, and
    `pattern` is layer head pos key, of the row in the batch, at its own tokens."""

    alone: Tensor
    together: Tensor
    pattern: Tensor

    @property
    def gap(self) -> float:
        return float((self.together - self.alone).abs().max())

    @property
    def on_padding(self) -> float:
        """Share of the row's attention, over all layers and heads, that padding gets."""
        return float(self.pattern[..., self.pattern.shape[-2] :].sum(-1).mean())

    def changed(self, digits: int) -> int:
        """Number of logits that differ when rounded to `digits` decimals."""
        return int((self.alone.round(decimals=digits) != self.together.round(decimals=digits)).sum())


def compare_row(name: str, rows: Sequence[Sequence[int]], row: int, masked: bool = True) -> RowComparison:
    """Row `row` alone and in the batch, with the padding mask or without, where padding counts as tokens."""
    model = open_in_float64(name).model
    length = len(rows[row])
    alone = run(model, [rows[row]], KEEP)
    together = run(model, rows if masked else fill(rows)[0], KEEP)
    pattern = together.stack("attn.pattern")[:, row, :, :length]
    return RowComparison(alone["logits"][0], together["logits"][row, :length], pattern)


def read_rows(said: str, vocab_size: int, most_rows: int, most: int) -> list[list[int]]:
    """Rows of ids as [[1, 8, 3, 2], [1, 10, 2]]. Raises ValueError for what is no such thing."""
    try:
        rows = parse_json(said)
        whole = all(type(id) is int and 0 <= id < vocab_size for row in rows for id in row)
    except (ValueError, TypeError, RecursionError):
        rows, whole = [], False
    if not whole or not 2 <= len(rows) <= most_rows or not all(0 < len(row) <= most for row in rows):
        raise ValueError(f"2 to {most_rows} rows of 1 to {most} ids below {vocab_size}")
    return [list(row) for row in rows]
