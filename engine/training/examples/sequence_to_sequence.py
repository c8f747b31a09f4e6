"""Sequence to sequence with teacher forcing: the decoder reads the right words and is asked for the next one.

(Vaswani et al. 2017, section 3.1: the target shifted right by one position.)
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.scoring.examples import UNASKED, Examples
from engine.training.examples.padding import Rows


@dataclass(frozen=True)
class Marks:
    """Ids: `start` is what every target begins with, `end` what closes it."""

    start: int
    end: int
    pad: int


def teacher_forced(sources: Rows, targets: Rows, marks: Marks) -> Examples:
    """Row by row: the encoder reads x1 .. xm, the decoder start y1 .. yn, and y1 .. yn end is asked."""
    inputs = {
        "ids": sources.fill_padding(marks.pad),
        "padding": sources.real,
        "target": add_column(targets.fill_padding(marks.pad), marks.start, before=True),
        "target_padding": add_column(targets.real, True, before=True),
    }
    asked = add_column(targets.fill_padding(UNASKED), UNASKED, before=False)
    return Examples(inputs, asked.scatter(1, targets.lengths[:, None], marks.end), whole=True)


def add_column(rows: Tensor, one: int, before: bool) -> Tensor:
    """Each row with `one` before it or behind it."""
    column = torch.full((len(rows), 1), one, dtype=rows.dtype)
    return torch.cat([column, rows] if before else [rows, column], dim=1)
