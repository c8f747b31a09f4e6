"""Filling a gap: the text around it is read in both directions, the span is written word by word (GLM, Du et al. 2022,
section 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.scoring.examples import UNASKED, Examples
from engine.tokenizers import Tokenizer
from engine.training.examples.padding import pad_rows, real

MASK, START, END = "[gMASK]", "[sop]", "[eop]"  # as GLM's vocabulary calls them


@dataclass(frozen=True)
class Marks:
    """Ids: `mask` stands for the gap, `start` begins the span, `end` closes it."""

    mask: int
    start: int
    end: int


def marks_of(tokenizer: Tokenizer) -> Marks:
    return Marks(*(tokenizer.special_tokens[name] for name in (MASK, START, END)))


def infill_examples(gapped: Sequence[Sequence[Tensor]], marks: Marks) -> Examples:
    """Builds a batch from passages cut into text, span, text, span, ..., text. What is read is the text with a mask for
    each span, and then each span behind a start of its own; what is asked is each span and its end.
    """
    rows = [torch.cat([join_with_masks(pieces[::2], marks), *begun(pieces[1::2], marks)]) for pieces in gapped]
    asked = [answers(pieces, marks) for pieces in gapped]
    return Examples({"ids": pad_rows(rows, marks.end), "padding": real(rows)}, pad_rows(asked, UNASKED))


def join_with_masks(texts: Sequence[Tensor], marks: Marks) -> Tensor:
    """The texts with a mask between each two."""
    mask = torch.tensor([marks.mask])
    return torch.cat([texts[0].long(), *(part for text in texts[1:] for part in (mask, text.long()))])


def begun(spans: Sequence[Tensor], marks: Marks) -> list[Tensor]:
    return [torch.cat([torch.tensor([marks.start]), span.long()]) for span in spans]


def prompt(before: Tensor, after: Tensor, marks: Marks) -> Tensor:
    """The text with its gap, and the token that begins what fills it."""
    return torch.cat([join_with_masks([before, after], marks), torch.tensor([marks.start])])


def answers(pieces: Sequence[Tensor], marks: Marks) -> Tensor:
    nothing = torch.full_like(join_with_masks(pieces[::2], marks), UNASKED)
    return torch.cat([nothing, *(part for span in pieces[1::2] for part in (span.long(), torch.tensor([marks.end])))])
