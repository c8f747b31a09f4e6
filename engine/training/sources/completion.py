"""Pairs of texts for a decoder alone."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from engine.data.documents import Document
from engine.scoring.examples import Examples
from engine.tokenizers import Tokenizer
from engine.tokenizers.continuation import read_continuation, without_last_marks
from engine.training.base.base import mark_id
from engine.training.examples.completion import Marks, completion_examples
from engine.training.examples.padding import Rows
from engine.training.recipe.recipe import Recipe
from engine.training.sources.corpus import Tokens
from engine.training.sources.pairs import TaughtPairs
from engine.training.sources.shelved_texts import END


class Completion(TaughtPairs):
    """Source, separator, target: the separator is the task's, or the last token of each source where it has none."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe, folder)
        tokenizer = self.corpus.tokenizer
        end = tokenizer.end_id
        assert end is not None  # END, or that of the base
        separator = mark_id(tokenizer, self.task.separator) if self.task.separator else None
        self.marks = Marks(separator, end, self.task.ended)

    def read(self, tokenizer: Tokenizer, document: Document) -> list[list[int]]:
        """The separator is read with both texts, and stands between their ids by itself."""
        source, target = document.texts
        separator = mark_id(tokenizer, self.task.separator) if self.task.separator else None
        between = "" if separator is None else token_text(tokenizer, separator)
        before, after = read_continuation(tokenizer, source + between, target)
        if separator is None:
            return [before, after]
        if before[-1:] != [separator]:  # a tokenizer that reads the marks that are typed as letters
            return [list(without_last_marks(tokenizer.encode(source)).ids), tokenizer.ids(target, special=False)]
        return [before[:-1], after]

    def special_tokens(self) -> tuple[str, ...]:
        return (self.task.separator, END) if self.task.separator else (END,)

    def lengths(self, tokens: Tokens) -> Tensor:
        added = int(self.task.ended) - int(not self.task.separator)
        return tokens.lengths.sum(1) + added  # the separator is read, and the last token is not

    def laid_out(self, sources: Rows, targets: Rows) -> Examples:
        return completion_examples(sources, targets, self.marks, self.recipe.objective.prompts)


def token_text(tokenizer: Tokenizer, id: int) -> str:
    """Text that is typed for a special token."""
    return next(text for text, each in tokenizer.special_tokens.items() if each == id)
