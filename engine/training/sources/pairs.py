"""Texts that become other texts: every task of the kind `PairTask`, for both ways of learning it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from torch import Tensor

from engine.data.documents import Document, Documents
from engine.data.own_tasks import task_of
from engine.data.task import Pair, PairTask
from engine.scoring.examples import Examples
from engine.tokenizers import Tokenizer
from engine.training.examples.padding import Rows
from engine.training.recipe.recipe import Recipe
from engine.training.sources.shelved_texts import ShelvedTexts
from engine.training.sources.source import Part

Ids = tuple[Tensor, Tensor]  # of a source and of its target


class TaughtPairs(ShelvedTexts[Pair]):
    def __init__(self, recipe: Recipe, folder: Path) -> None:
        task = task_of(recipe.data.table)
        if not isinstance(task, PairTask):
            raise ValueError(f"pairs of texts come from a task on them, and [data.{recipe.data.kind}] is none.")
        self.task = task
        documents = Documents(
            lambda: map(document, self.task_examples("train")),
            lambda: map(document, self.task_examples("held_out")),
            self.special_tokens(),
            self.read,
            template="bare",
            alphabet=task.alphabet,
        )
        super().__init__(recipe, folder, documents)

    def task_examples(self, part: Part) -> Iterator[Pair]:
        return self.task.pairs(part, self.recipe.data_seed)

    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        tokens = self.shelves[part].tokens
        return self.laid_out(tokens.rows(indexes, 0), tokens.rows(indexes, 1))

    def ids(self, part: Part, indexes: Sequence[int]) -> list[Ids]:
        found = map(self.shelves[part].tokens.document, indexes)
        return [(source, target) for source, target in found]

    @abstractmethod
    def read(self, tokenizer: Tokenizer, document: Document) -> list[list[int]]:
        """Ids of a source and of its target, as they are when both are typed."""

    @abstractmethod
    def special_tokens(self) -> tuple[str, ...]:
        """Special tokens of the tokenizer."""

    @abstractmethod
    def laid_out(self, sources: Rows, targets: Rows) -> Examples: ...


def document(one: Pair) -> Document:
    return Document((one.source, one.target))
