"""Texts with a class for each word: every task of the kind `TagTask`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.data.documents import Document, Documents
from engine.data.drawing import Part
from engine.data.own_tasks import task_of
from engine.data.task import Tagged, TagTask
from engine.model.config import ModelConfig
from engine.scoring.examples import Examples
from engine.training.examples.token_classification import tagging_examples
from engine.training.recipe.recipe import Recipe
from engine.training.run.folder import RunFolder
from engine.training.sources.shelved_texts import ShelvedTexts, marks, with_classes


class TaggedTexts(ShelvedTexts[Tagged]):
    """Read as its tokenizer encodes the words with a space between them."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        task = task_of(recipe.data.table, labels=RunFolder(folder).read_labels())
        if not isinstance(task, TagTask):
            raise ValueError(f"words with a class come from a task on them, and [data.{recipe.data.kind}] is none.")
        self.task, self.labels = task, task.labels
        documents = Documents(
            lambda: (Document((one.text,)) for one in self.task_examples("train")),
            lambda: (Document((one.text,)) for one in self.task_examples("held_out")),
            marks(recipe),
        )
        super().__init__(recipe, folder, documents)

    def task_examples(self, part: Part) -> Iterator[Tagged]:
        return self.task.sentences(part, self.recipe.data_seed)

    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        chosen = [self.rows[part][index] for index in indexes]
        rows = [self.corpus.tokenizer.encode(one.text) for one in chosen]
        classes = [[self.labels.index(tag) for tag in one.tags] for one in chosen]
        return tagging_examples(rows, classes, self.fill)

    @property
    def tags(self) -> dict[Part, set[str]]:
        """Tags, by part, that occur in the sentences that fit the context."""
        chosen = {part: [self.rows[part][index] for index in each.fit.tolist()] for part, each in self.shelves.items()}
        return {part: {tag for one in rows for tag in one.tags} for part, rows in chosen.items()}

    def complete_config(self, config: ModelConfig) -> ModelConfig:
        config = with_classes(config, self.recipe, self.labels, self.tags)
        if config.head.classes != len(self.labels) or config.embedding.patches is not None:
            raise ValueError(
                f"model.head.classes must be {len(self.labels)} for [data.{self.recipe.data.kind}], with "
                f"embedding.patches left out, got {config.head.classes} and {config.embedding.patches}."
            )
        return super().complete_config(config)
