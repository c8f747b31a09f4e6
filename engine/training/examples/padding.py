"""Rows of unequal length as one tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True)
class Rows:
    """`ids` is batch pos, and each row the first of them, as many as `lengths` (batch) says; what is behind is
    anything."""

    ids: Tensor
    lengths: Tensor

    @property
    def real(self) -> Tensor:
        """batch pos: True where a token stands, False where the batch is filled up."""
        return torch.arange(self.ids.shape[1]) < self.lengths[:, None]

    def fill_padding(self, fill: int) -> Tensor:
        return self.ids.masked_fill(~self.real, fill)


def gather_rows(ids: Tensor, begins: Tensor, lengths: Tensor) -> Rows:
    """Stretches of one long row, each from where it `begins`."""
    places = begins[:, None] + torch.arange(int(lengths.max()))
    return Rows(ids[places.clamp(max=len(ids) - 1)].long(), lengths)


def rows_of(each: Sequence[Tensor]) -> Rows:
    return Rows(pad_rows(each, 0), torch.tensor([len(row) for row in each]))


def pad_rows(rows: Sequence[Tensor], fill: int) -> Tensor:
    """batch pos, int64, filled up on the right."""
    return pad_sequence([row.long() for row in rows], batch_first=True, padding_value=fill)


def real(rows: Sequence[Tensor]) -> Tensor:
    """batch pos: True where a token stands, False where the batch is filled up."""
    return rows_of(rows).real
