"""Questions whose answers stand in a text: a person's own rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from engine.data.documents import Document, Documents
from engine.data.drawing import Part
from engine.data.own_tasks import task_of
from engine.data.task import Answered, AnswerTask
from engine.scoring.examples import Examples
from engine.tokenizers import Encoding
from engine.training.examples.span import span_examples
from engine.training.recipe.recipe import Recipe
from engine.training.sources.shelved_texts import ShelvedTexts, marks


class Answers(ShelvedTexts[Answered]):
    """Question and context, joined as the tokenizer joins two texts; one that is too long for the context is left
    out."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        task = task_of(recipe.data.table)
        if not isinstance(task, AnswerTask):
            raise ValueError(f"answers come from a task on them, and [data.{recipe.data.kind}] is none.")
        self.task = task
        documents = Documents(
            lambda: (Document((one.question, one.context)) for one in self.task_examples("train")),
            lambda: (Document((one.question, one.context)) for one in self.task_examples("held_out")),
            marks(recipe),
        )
        super().__init__(recipe, folder, documents)

    def task_examples(self, part: Part) -> Iterator[Answered]:
        return self.task.answers(part, self.recipe.data_seed)

    def encode(self, one: Answered) -> Encoding:
        return self.corpus.tokenizer.encode(one.question, one.context)

    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        chosen = [self.rows[part][index] for index in indexes]
        segments = self.recipe.model.embedding.segments > 1
        return span_examples(list(map(self.encode, chosen)), chosen, self.fill, segments)
