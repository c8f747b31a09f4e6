"""Windows of a running text with words to guess."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from engine.data.documents import Document
from engine.scoring.examples import Examples
from engine.tokenizers import END, Tokenizer
from engine.training.examples.masked import marks_of, masked_windows
from engine.training.recipe.recipe import Recipe
from engine.training.sources.source import Part, chance, count_rows
from engine.training.sources.windows import Windows

CLS, SEP, MASK, PAD = "[CLS]", "[SEP]", "[MASK]", "[PAD]"


class MaskedWindows(Windows):
    """The marks stand around each window, as around a text that is typed."""

    special_tokens: ClassVar[tuple[str, ...]] = (PAD, CLS, SEP, MASK, END)
    template: ClassVar[Literal["bare", "bert"]] = "bert"
    more: int = -2  # [CLS] and [SEP]

    @staticmethod
    def read(tokenizer: Tokenizer, document: Document, marked: bool = False) -> list[list[int]]:
        return Windows.read(tokenizer, document, marked)

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        rows = count_rows(recipe.model, self.corpus.tokenizer) if recipe.base else None
        self.marks = marks_of(self.corpus.tokenizer, rows)

    def draw(self, part: Part, seed: int) -> Examples:
        draw = chance(seed)
        return masked_windows(self.windows(part, draw), self.marks, draw)
