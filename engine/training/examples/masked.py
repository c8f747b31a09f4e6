"""Masked words and next sentences, BERT's two tasks (Devlin et al. 2019, section 3.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.scoring.examples import UNASKED, Examples
from engine.tokenizers import Tokenizer
from engine.training.base.base import mark_id
from engine.training.examples.padding import pad_rows, real

CHOSEN = 0.15  # of the tokens of a text, to be guessed
MASKED, REPLACED = 0.8, 0.1  # of those, shown as the mask and as a random token; the rest is shown as it is
FOLLOWS, ANOTHER = 0, 1  # the two classes, as transformers numbers them


@dataclass(frozen=True)
class Marks:
    """Ids of the special tokens, and `ordinary`, of all others."""

    cls: int
    sep: int
    mask: int
    pad: int
    ordinary: Tensor


def marks_of(tokenizer: Tokenizer, rows: int | None = None) -> Marks:
    """`rows` are those of a base's table of embeddings, which may lack some of the tokenizer's last tokens."""
    special = set(tokenizer.special_tokens.values())
    known = tokenizer.vocab_size if rows is None else min(rows, tokenizer.vocab_size)
    ordinary = torch.tensor([id for id in range(known) if id not in special])
    cls, sep, mask, pad = (mark_id(tokenizer, mark) or 0 for mark in ("[CLS]", "[SEP]", "[MASK]", "[PAD]"))
    return Marks(cls, sep, mask, pad, ordinary)


def masked_pairs(
    pairs: Sequence[tuple[Tensor, Tensor]], follows: Tensor, marks: Marks, chance: torch.Generator
) -> Examples:
    """[CLS] A [SEP] B [SEP] with some words hidden; asked are those words, and whether B follows A."""
    rows = [join_sentences(first, second, marks) for first, second in pairs]
    ids = pad_rows(rows, marks.pad)
    segments = pad_rows([segments_of(first, second) for first, second in pairs], 0)
    special = (ids == marks.cls) | (ids == marks.sep) | (ids == marks.pad)
    read, targets = hide(ids, ~special, marks, chance)
    inputs = {"ids": read, "segments": segments, "padding": real(rows)}
    return Examples(inputs, targets, torch.where(follows, FOLLOWS, ANOTHER))


def masked_windows(windows: Tensor, marks: Marks, chance: torch.Generator) -> Examples:
    """[CLS] window [SEP] (`windows` batch pos) with some words hidden, which are asked."""
    ends = [torch.full((len(windows), 1), id, dtype=windows.dtype) for id in (marks.cls, marks.sep)]
    ids = torch.cat([ends[0], windows, ends[1]], dim=1)
    read, targets = hide(ids, torch.isin(ids, marks.ordinary), marks, chance)
    return Examples({"ids": read}, targets)


def join_sentences(first: Tensor, second: Tensor, marks: Marks) -> Tensor:
    cls, sep = (torch.tensor([id], dtype=first.dtype) for id in (marks.cls, marks.sep))
    return torch.cat([cls, first, sep, second, sep])


def segments_of(first: Tensor, second: Tensor) -> Tensor:
    """0 for [CLS] A [SEP], 1 for B [SEP]."""
    return torch.cat([torch.zeros(len(first) + 2), torch.ones(len(second) + 1)])


def hide(ids: Tensor, may: Tensor, marks: Marks, chance: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draws what is read, and what is asked (UNASKED elsewhere), both batch pos. `may` says which tokens may be chosen.

    Of each row the nearest whole number to 15 % is chosen, and one at least, as in BERT's code.
    """
    wanted = (may.sum(1, keepdim=True) * CHOSEN).round().clamp(min=1)
    lot = torch.rand(ids.shape, generator=chance).masked_fill(~may, 2.0)
    chosen = (lot.argsort(1).argsort(1) < wanted) & may
    kind = torch.rand(ids.shape, generator=chance)
    others = marks.ordinary[torch.randint(len(marks.ordinary), ids.shape, generator=chance)]
    shown = torch.where(kind < MASKED, marks.mask, torch.where(kind < MASKED + REPLACED, others, ids))
    return torch.where(chosen, shown, ids), torch.where(chosen, ids, UNASKED)
