"""A text and the one that it becomes, in one row for a decoder alone (Radford et al. 2018, section 3.3): the first is
read, and of what comes behind the separator every token is asked.
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
    """Ids: `separator` stands between the two texts, `end` closes the second. `asked`: the end is asked as well."""

    separator: int
    end: int
    asked: bool = True


def completed(pairs: Sequence[tuple[Tensor, Tensor]], marks: Marks) -> Examples:
    """Row by row x1 .. xm separator y1 .. yn is read, and y1 .. yn end is asked from the separator on. Without the end
    the last of y is not read, since nothing follows it."""
    end = torch.tensor([marks.end] if marks.asked else [], dtype=torch.long)
    whole = [torch.cat([prompt(source, marks), target.long(), end]) for source, target in pairs]
    asked = [row[1:].clone() for row in whole]
    for row, (source, _) in zip(asked, pairs, strict=True):
        row[: len(source)] = UNASKED
    rows = [row[:-1] for row in whole]
    inputs = {"ids": padded(rows, marks.end)}
    if len({len(row) for row in rows}) > 1:
        inputs["padding"] = real(rows)
    return Examples(inputs, padded(asked, UNASKED), whole=True)


def prompt(source: Tensor, marks: Marks) -> Tensor:
    """What a person writes for the model to complete."""
    return torch.cat([source.long(), torch.tensor([marks.separator])])
