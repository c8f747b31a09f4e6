"""Texts that become other texts: every task of the kind `PairTask`, for both ways of learning it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path

from torch import Tensor

from engine.data.own_tasks import task_of
from engine.data.task import Pair, PairTask
from engine.training.corpus import Document, Documents, Tokens, open_corpus
from engine.training.objectives import Examples
from engine.training.recipe import Recipe
from engine.training.sources.shelf import shelf
from engine.training.sources.source import Part, Source, chance

END = "</s>"
Ids = tuple[Tensor, Tensor]  # of a source and of its target


class TaughtPairs(Source):
    """`told` are the pairs as texts, in the order of the documents of the corpus."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        task = task_of(recipe.data.table)
        if not isinstance(task, PairTask):
            raise ValueError(f"pairs of texts come from a task on them, and [data.{recipe.data.kind}] is none.")
        self.task = task
        self.corpus = open_corpus(
            Documents(
                lambda: map(document, self.told("train")),
                lambda: map(document, self.told("held_out")),
                self.special_tokens(),
                template="bare",
                alphabet=task.alphabet,
            ),
            recipe.data,
            recipe.seed,
            folder,
        )
        self.tokenizer = self.corpus.tokenizer
        self.shelves = {
            part: shelf(tokens, self.lengths(tokens), recipe.batch.context)
            for part, tokens in (("train", self.corpus.train), ("held_out", self.corpus.held_out))
        }

    def told(self, part: Part) -> Iterator[Pair]:
        return self.task.pairs(part, self.recipe.seed)

    def draw(self, part: Part, seed: int) -> Examples:
        return self.examples(self.ids(part, self.shelves[part].draw(self.recipe.batch.size, chance(seed))))

    def held_out(self, batches: int) -> Iterator[Examples]:
        """All that is held out, or the first `batches` batches of it."""
        fit, size = self.shelves["held_out"].fit.tolist(), self.recipe.batch.size
        for begin in range(0, min(len(fit), batches * size), size):
            yield self.examples(self.ids("held_out", fit[begin : begin + size]))

    def ids(self, part: Part, indexes: Sequence[int]) -> list[Ids]:
        found = map(self.shelves[part].tokens.document, indexes)
        return [(source, target) for source, target in found]

    @abstractmethod
    def special_tokens(self) -> tuple[str, ...]:
        """Those of the tokenizer."""

    @abstractmethod
    def lengths(self, tokens: Tokens) -> Tensor:
        """How many tokens a stack reads of each document."""

    @abstractmethod
    def examples(self, pairs: Sequence[Ids]) -> Examples: ...

def document(one: Pair) -> Document:
    return Document((one.source, one.target))
