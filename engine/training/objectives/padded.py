"""Rows of unequal length as one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


def padded(rows: Sequence[Tensor], fill: int) -> Tensor:
    """batch pos, int64, filled up on the right."""
    return pad_sequence([row.long() for row in rows], batch_first=True, padding_value=fill)


def real(rows: Sequence[Tensor]) -> Tensor:
    """batch pos: True where a token stands, False where the batch is filled up."""
    lengths = torch.tensor([len(row) for row in rows])
    return torch.arange(int(lengths.max())) < lengths[:, None]
