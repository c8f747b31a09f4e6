"""Texts with a class for each word: every task of the kind `TagTask`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from engine.config import ModelConfig
from engine.data.drawing import Part
from engine.data.own import Columns
from engine.data.own_tasks import task_of
from engine.data.task import Tagged, TagTask
from engine.training.corpus import Document, Documents, open_corpus
from engine.training.objectives import Examples
from engine.training.objectives.token_classification import tagged
from engine.training.recipe import Recipe
from engine.training.sources.labelled import END, PAD
from engine.training.sources.shelf import shelf
from engine.training.sources.source import Source, chance


class TaggedTexts(Source):
    """Read as its tokenizer encodes the words with a space between them."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        task = task_of(recipe.data.table)
        if not isinstance(task, TagTask):
            raise ValueError(f"words with a class come from a task on them, and [data.{recipe.data.kind}] is none.")
        self.task = task
        self.labels = task.labels
        documents = Documents(
            lambda: (Document((one.text,)) for one in task.sentences("train", recipe.seed)),
            lambda: (Document((one.text,)) for one in task.sentences("held_out", recipe.seed)),
            None if recipe.data.tokenizer.kind == "wordpiece" else (PAD, END),
            marked=True,
        )
        self.corpus = open_corpus(documents, recipe.data, recipe.seed, folder)
        self.tokenizer = self.corpus.tokenizer
        self.shelves = {
            part: shelf(tokens, tokens.lengths.sum(1), recipe.batch.context)
            for part, tokens in (("train", self.corpus.train), ("held_out", self.corpus.held_out))
        }

    @cached_property
    def told(self) -> dict[Part, tuple[Tagged, ...]]:
        parts: tuple[Part, ...] = ("train", "held_out")
        return {part: tuple(self.task.sentences(part, self.recipe.seed)) for part in parts}

    def draw(self, part: Part, seed: int) -> Examples:
        return self.examples(part, self.shelves[part].draw(self.recipe.batch.size, chance(seed)))

    def held_out(self, batches: int) -> Iterator[Examples]:
        """All that is held out, or the first `batches` batches of it."""
        fit, size = self.shelves["held_out"].fit.tolist(), self.recipe.batch.size
        for begin in range(0, min(len(fit), batches * size), size):
            yield self.examples("held_out", fit[begin : begin + size])

    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        chosen = [self.told[part][index] for index in indexes]
        rows = [self.corpus.tokenizer.encode(one.text) for one in chosen]
        classes = [[self.labels.index(tag) for tag in one.tags] for one in chosen]
        return tagged(rows, classes, self.corpus.tokenizer.pad_id or 0)

    def fitted(self, config: ModelConfig) -> ModelConfig:
        if isinstance(self.recipe.data.table, Columns):  # only the data knows how many
            config = replace(config, head=replace(config.head, classes=len(self.labels)))
        if config.head.classes != len(self.labels) or config.embedding.patches is not None:
            raise ValueError(
                f"model.head.classes must be {len(self.labels)} for [data.{self.recipe.data.kind}], with "
                f"embedding.patches left out, got {config.head.classes} and {config.embedding.patches}."
            )
        return super().fitted(config)
