"""Sequence to sequence with teacher forcing: the decoder reads the right words and is asked for the next one.

(Vaswani et al. 2017, section 3.1: the target shifted right by one position.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.training.objectives.examples import UNASKED, Examples
from engine.training.objectives.padded import padded, real


@dataclass(frozen=True)
class Marks:
    """Ids: `start` is what every target begins with, `end` what closes it."""

    start: int
    end: int
    pad: int


def teacher_forced(sources: Sequence[Tensor], targets: Sequence[Tensor], marks: Marks) -> Examples:
    """Row by row: the encoder reads x1 .. xm, the decoder start y1 .. yn, and y1 .. yn end is asked."""
    start, end = (torch.tensor([id]) for id in (marks.start, marks.end))
    shifted = [torch.cat([start, row.long()]) for row in targets]
    asked = [torch.cat([row.long(), end]) for row in targets]
    inputs = {
        "ids": padded(sources, marks.pad),
        "padding": real(sources),
        "target": padded(shifted, marks.pad),
        "target_padding": real(shifted),
    }
    return Examples(inputs, padded(asked, UNASKED), whole=True)
