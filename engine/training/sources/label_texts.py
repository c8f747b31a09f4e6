"""Texts with a class: every task of the kind `LabelTask`, for an encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import torch

from engine.data.documents import Document, Documents
from engine.data.drawing import Part
from engine.data.own_tasks import task_of
from engine.data.task import Labelled, LabelTask
from engine.model.config import ModelConfig
from engine.scoring.examples import UNASKED, Examples
from engine.training.examples.classification import classification_examples, pair_inputs
from engine.training.examples.padding import pad_rows, real
from engine.training.recipe.recipe import Recipe
from engine.training.run.folder import RunFolder
from engine.training.sources.shelved_texts import ShelvedTexts, marks, with_classes


class LabelledTexts(ShelvedTexts[Labelled]):
    """Read as its tokenizer encodes them, so that a text that is typed is read as those that were learned from."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        task = task_of(recipe.data.table, labels=RunFolder(folder).read_labels())
        if not isinstance(task, LabelTask):
            raise ValueError(f"texts with a class come from a task on them, and [data.{recipe.data.kind}] is none.")
        self.task, self.labels = task, task.labels
        documents = Documents(
            lambda: map(document, self.task_examples("train")),
            lambda: map(document, self.task_examples("held_out")),
            marks(recipe),
            alphabet=task.alphabet,
        )
        super().__init__(recipe, folder, documents)

    def task_examples(self, part: Part) -> Iterator[Labelled]:
        return self.task.texts(part, self.recipe.data_seed)

    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        tokens = self.shelves[part].tokens
        if tokens.starts.shape[1] > 1:
            return self.with_language(self.pair_examples(part, indexes))
        rows = [text for index in indexes for text in tokens.document(index)]
        labels = tokens.labels[list(indexes)]
        return self.with_language(classification_examples(pad_rows(rows, self.fill), labels, real(rows)))

    def with_language(self, examples: Examples) -> Examples:
        """Adds each next token of the texts as a target, where the model has a language head for that."""
        if not self.recipe.model.head.language:
            return examples
        following = examples.ids.masked_fill(~examples.inputs["padding"], UNASKED).roll(-1, 1)
        following[:, -1] = UNASKED
        return replace(examples, second=following)

    def pair_examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        """Two texts each, joined as the tokenizer joins them."""
        chosen = [self.rows[part][index] for index in indexes]
        rows = [self.corpus.tokenizer.encode(one.text, one.pair) for one in chosen]
        inputs = pair_inputs(rows, self.fill, self.recipe.model.embedding.segments > 1)
        return Examples(inputs, torch.tensor([one.label for one in chosen]))

    def complete_config(self, config: ModelConfig) -> ModelConfig:
        found = {part: each.tokens.labels[each.fit].unique() for part, each in self.shelves.items()}
        names = {part: {self.labels[label] for label in each.tolist()} for part, each in found.items()}
        config = with_classes(config, self.recipe, self.labels, names)
        head, patches, mask = config.head, config.embedding.patches, config.attention.mask
        if head.classes != len(self.labels) or patches is not None or (mask == "causal" and head.read == "first"):
            raise ValueError(
                f"model.head.classes must be {len(self.labels)} for [data.{self.recipe.data.kind}], with "
                f'embedding.patches left out and attention.mask "full", got {head.classes}, {patches} and "{mask}".'
            )
        return super().complete_config(config)


def document(one: Labelled) -> Document:
    return Document((one.text, one.pair) if one.pair else (one.text,), one.label)
