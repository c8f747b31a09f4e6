"""Texts that are read whole, a row each."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from torch import Tensor

from engine.data.documents import Documents
from engine.data.drawing import Part
from engine.data.own import Columns
from engine.model.config import ModelConfig
from engine.scoring.examples import Examples
from engine.training.recipe.recipe import Recipe
from engine.training.sources.corpus import Tokens, open_corpus
from engine.training.sources.shelf import make_shelf
from engine.training.sources.source import Source, chance, count_rows

PAD, END = "<pad>", "</s>"
Row = TypeVar("Row")


class ShelvedTexts(Source, Generic[Row]):
    """`task_examples` are the rows as the task tells them, in the order of the documents of the corpus."""

    def __init__(self, recipe: Recipe, folder: Path, documents: Documents) -> None:
        super().__init__(recipe)
        self.corpus = open_corpus(documents, recipe.data, recipe.data_seed, folder, recipe.base)
        self.tokenizer = self.corpus.tokenizer
        pad = self.tokenizer.pad_id
        beyond = recipe.base and pad is not None and pad >= count_rows(recipe.model, self.tokenizer)
        self.fill = 0 if pad is None or beyond else pad  # what stands there is never read
        parts: dict[Part, Tokens] = {"train": self.corpus.train, "held_out": self.corpus.held_out}
        context = recipe.batch.context
        self.shelves = {part: make_shelf(tokens, self.lengths(tokens), context) for part, tokens in parts.items()}
        self.count = sum(len(each.tokens.starts) for each in self.shelves.values())
        self.left_out = self.count - sum(len(each.fit) for each in self.shelves.values())

    def draw(self, part: Part, seed: int) -> Examples:
        return self.examples(part, self.shelves[part].draw(self.recipe.batch.size, chance(seed)))

    def held_out(self, batches: int) -> Iterator[Examples]:
        """All that is held out, or the first `batches` batches of it."""
        fit, size = self.shelves["held_out"].fit.tolist(), self.recipe.batch.size
        for begin in range(0, min(len(fit), batches * size), size):
            yield self.examples("held_out", fit[begin : begin + size])

    def held_out_rows(self, most: int) -> list[Row]:
        """The first `most` of those that are held out and fit the context, as the task tells them."""
        fit = self.shelves["held_out"].fit[:most].tolist()
        told = list(islice(self.task_examples("held_out"), fit[-1] + 1))
        return [told[index] for index in fit]

    @cached_property
    def rows(self) -> dict[Part, tuple[Row, ...]]:
        parts: tuple[Part, ...] = ("train", "held_out")
        return {part: tuple(self.task_examples(part)) for part in parts}

    @abstractmethod
    def task_examples(self, part: Part) -> Iterator[Row]:
        """All rows of a part, from the first."""

    def lengths(self, tokens: Tokens) -> Tensor:
        """Counts the tokens that a stack reads of each document."""
        return tokens.lengths.sum(1)

    @abstractmethod
    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        """Examples of these documents of the part."""


def marks(recipe: Recipe) -> tuple[str, ...] | None:
    """The special tokens of an encoder's tokenizer; None where its kind has its own."""
    return None if recipe.data.tokenizer.declared.own_marks else (PAD, END)


def with_classes(
    config: ModelConfig, recipe: Recipe, labels: Sequence[str], classes: Mapping[Part, Set[str]]
) -> ModelConfig:
    """Sets the number of classes, which only a person's own data knows. Raises ValueError where some `classes`
    are held out and never learned."""
    if not isinstance(recipe.data.table, Columns):
        return config
    if never := sorted(classes["held_out"] - classes["train"]):
        raise ValueError(
            f"each label that is held out must be learned from too, got {', '.join(map(repr, never))[:200]} in the "
            "held-out rows alone; add rows with it, remove those that have it, or choose another seed."
        )
    return replace(config, head=replace(config.head, classes=len(labels)))
