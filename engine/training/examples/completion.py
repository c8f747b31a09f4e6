"""A text and the one that it becomes, in one row for a decoder alone (Radford et al. 2018, section 3.3): the first is
read, and of what comes behind the separator every token is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.scoring.examples import UNASKED, Examples
from engine.training.examples.padding import Rows


@dataclass(frozen=True)
class Marks:
    """Ids: `separator` stands between the two texts, `end` closes the second. `asked`: the end is asked as well. Where
    `separator` is None the last token of each first text is its own."""

    separator: int | None
    end: int
    asked: bool = True


def completion_examples(sources: Rows, targets: Rows, marks: Marks, prompts: bool = False) -> Examples:
    """Row by row x1 .. xm separator y1 .. yn is read, and y1 .. yn end is asked from the separator on, with `prompts`
    x2 .. xm and the separator too. Without the end the last of y is not read, since nothing follows it."""
    whole = join_pairs(sources, targets, marks)
    before = sources.lengths - int(marks.separator is None)
    place, first = torch.arange(whole.shape[1] - 1), before[:, None]
    lengths = before + targets.lengths + int(marks.asked)
    behind = place >= lengths[:, None]
    inputs = {"ids": whole[:, :-1].masked_fill(behind, marks.end)}
    if len(lengths.unique()) > 1:
        inputs["padding"] = ~behind
    return Examples(inputs, whole[:, 1:].masked_fill(behind | (place < first) & (not prompts), UNASKED), whole=True)


def join_pairs(sources: Rows, targets: Rows, marks: Marks) -> Tensor:
    """batch pos: each source, the separator, its target, and the end from there on."""
    own = marks.separator is None
    first, second = sources.lengths[:, None] - int(own), targets.lengths[:, None]
    width = int((first + second).max()) + 1 + int(marks.asked)
    signs = torch.tensor([marks.end if marks.separator is None else marks.separator, marks.end]).expand(len(first), -1)
    place, left = torch.arange(width), sources.ids.shape[1]
    separator = left + targets.ids.shape[1]
    found = torch.where(place < first, place, left + place - first - 1)
    found = torch.where(place == first, place if own else separator, found)
    found = torch.where(place > first + second, separator + 1, found)
    return torch.cat([sources.ids, targets.ids, signs], dim=1).gather(1, found)


def prompt(source: Tensor, marks: Marks) -> Tensor:
    """Text that a person writes for the model to complete."""
    return source.long() if marks.separator is None else torch.cat([source.long(), torch.tensor([marks.separator])])
