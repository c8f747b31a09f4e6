"""Texts with a class: every task of the kind `LabelTask`, for an encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from engine.config import ModelConfig
from engine.data.drawing import Part
from engine.data.own import Columns
from engine.data.own_tasks import task_of
from engine.data.task import Labelled, LabelTask
from engine.training.corpus import Document, Documents, open_corpus
from engine.training.objectives import Examples
from engine.training.objectives.classification import classified
from engine.training.objectives.padded import padded, real
from engine.training.recipe import Recipe
from engine.training.sources.shelf import shelf
from engine.training.sources.source import Source, chance

PAD, END = "<pad>", "</s>"


class LabelledTexts(Source):
    """Read as its tokenizer encodes them, so that a text that is typed is read as those that were learned from."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        super().__init__(recipe)
        task = task_of(recipe.data.table)
        if not isinstance(task, LabelTask):
            raise ValueError(f"texts with a class come from a task on them, and [data.{recipe.data.kind}] is none.")
        self.task = task
        self.labels = task.labels
        documents = Documents(
            lambda: map(document, self.told("train")),
            lambda: map(document, self.told("held_out")),
            None if recipe.data.tokenizer.kind == "wordpiece" else (PAD, END),
            marked=True,
            alphabet=task.alphabet,
        )
        self.corpus = open_corpus(documents, recipe.data, recipe.seed, folder)
        self.tokenizer = self.corpus.tokenizer
        self.fill = self.tokenizer.pad_id or 0
        self.shelves = {
            part: shelf(tokens, tokens.lengths.sum(1), recipe.batch.context)
            for part, tokens in (("train", self.corpus.train), ("held_out", self.corpus.held_out))
        }

    def told(self, part: Part) -> Iterator[Labelled]:
        return self.task.texts(part, self.recipe.seed)

    def draw(self, part: Part, seed: int) -> Examples:
        return self.examples(part, self.shelves[part].draw(self.recipe.batch.size, chance(seed)))

    def held_out(self, batches: int) -> Iterator[Examples]:
        """All that is held out, or the first `batches` batches of it."""
        fit, size = self.shelves["held_out"].fit.tolist(), self.recipe.batch.size
        for begin in range(0, min(len(fit), batches * size), size):
            yield self.examples("held_out", fit[begin : begin + size])

    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        tokens = self.shelves[part].tokens
        rows = [text for index in indexes for text in tokens.document(index)]
        return classified(padded(rows, self.fill), tokens.labels[list(indexes)], real(rows))

    def fitted(self, config: ModelConfig) -> ModelConfig:
        if isinstance(self.recipe.data.table, Columns):  # only the data knows how many
            config = replace(config, head=replace(config.head, classes=len(self.labels)))
        head, patches, mask = config.head, config.embedding.patches, config.attention.mask
        if head.classes != len(self.labels) or patches is not None or (mask == "causal" and head.read == "first"):
            raise ValueError(
                f"model.head.classes must be {len(self.labels)} for [data.{self.recipe.data.kind}], with "
                f'embedding.patches left out and attention.mask "full", got {head.classes}, {patches} and "{mask}".'
            )
        return super().fitted(config)


def document(one: Labelled) -> Document:
    return Document((one.text,), one.label)
