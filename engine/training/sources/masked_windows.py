"""Windows of a running text with words to guess."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

import torch

from engine.scoring.examples import Examples
from engine.tokenizers import END
from engine.training.base import mark_id
from engine.training.objectives.masked import Marks, masked_windows
from engine.training.recipe import Recipe
from engine.training.sources.source import Part, chance
from engine.training.sources.windows import Windows

CLS, SEP, MASK, PAD = "[CLS]", "[SEP]", "[MASK]", "[PAD]"


class MaskedWindows(Windows):
    """The marks stand around each window, as around a text that is typed."""

    special_tokens: ClassVar[tuple[str, ...]] = (PAD, CLS, SEP, MASK, END)
    template: ClassVar[Literal["bare", "bert"]] = "bert"
    more: int = -2  # [CLS] and [SEP]

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        tokenizer = self.corpus.tokenizer
        special = set(tokenizer.special_tokens.values())
        ordinary = torch.tensor([id for id in range(tokenizer.vocab_size) if id not in special])
        cls, sep, mask, pad = (mark_id(tokenizer, mark) or 0 for mark in (CLS, SEP, MASK, PAD))
        self.marks = Marks(cls, sep, mask, pad, ordinary)

    def draw(self, part: Part, seed: int) -> Examples:
        draw = chance(seed)
        return masked_windows(self.windows(part, draw), self.marks, draw)
