"""Pairs of texts for a decoder alone."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from engine.training.corpus import Tokens
from engine.training.objectives import Examples
from engine.training.objectives.completion import Marks, completed
from engine.training.objectives.padded import Rows
from engine.training.recipe import Recipe
from engine.training.sources.pairs import TaughtPairs
from engine.training.sources.shelved import END


class Completion(TaughtPairs):
    """Source, separator, target: the separator is the task's, and a token of its own."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        named = self.corpus.tokenizer.special_tokens
        self.marks = Marks(named[self.task.separator], named[END], self.task.ended)

    def special_tokens(self) -> tuple[str, ...]:
        return self.task.separator, END

    def lengths(self, tokens: Tokens) -> Tensor:
        return tokens.lengths.sum(1) + int(self.task.ended)  # the separator is read, and the last token is not

    def laid_out(self, sources: Rows, targets: Rows) -> Examples:
        return completed(sources, targets, self.marks)
