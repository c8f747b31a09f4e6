"""A recipe for a person's own data: the model and schedule of a task that is like it, fitted to what the data is."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace

from engine.checkpoints.heads import plain_head
from engine.data.kinds.digits import Digits
from engine.data.kinds.hub import Hub
from engine.data.kinds.rows import Rows
from engine.data.kinds.sentence_pairs import SentencePairs
from engine.data.kinds.text import Text
from engine.data.own import Columns
from engine.data.own_tasks import OwnAnswers, OwnLabels, OwnTags, task_of
from engine.data.table import Table
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.model.config import ModelConfig
from engine.training import Recipe
from engine.training.objectives import find_objective, list_fitting
from engine.training.objectives.kind import CAUSAL
from engine.training.recipe.data_recipe import Data
from engine.training.sources.conversations import read_conversation
from pages.controls.train.presets import presets

SHARE = 0.1  # that is held out
AROUND = "<| role |> "  # a message, about what a chat template writes
MARKS = 3  # tokens beside those of a row's texts, at most
LONGEST, LONGEST_TALK = 256, 1_024  # tokens of a row, of texts and of messages
WORDS = 4_096  # of a vocabulary of words, at most
PIECE = re.compile(r"\w+|\S|\s")


def objectives(data: Text | Columns) -> list[str]:
    """Objectives that can be learned from the data and have a task here that they are like."""
    learns = list_fitting("text" if isinstance(data, Text) else data.form)
    return [one for one in learns if data.kind in find_objective(one).sources and like(one) is not None]


def like(objective: str) -> Recipe | None:
    """Recipe of the task here that the objective names, or else of one that is learned by it."""
    found = presets()
    if (named := find_objective(objective).like) in found:
        return found[named].recipe
    suited = (one.recipe for one in found.values() if one.recipe.objective.kind == objective)
    return next((one for one in suited if not isinstance(one.data.table, Digits | SentencePairs)), None)


def learns_text(objective: str) -> bool:
    return "text" in find_objective(objective).forms


def of_text(data: Text, objective: str, name: str, text: str) -> Recipe:
    """Reading no more at once than is held out of the text."""
    windows = 1 if find_objective(objective).needs == CAUSAL else 5  # where a window asks for some of its tokens
    least = 2 ** int(math.log2(max(8, SHARE * len(text) / windows - 2)))
    return recipe_like(Data(data), objective, name, least)


def of_table(data: Rows | Hub, objective: str, name: str, table: Table) -> Recipe:
    """Reading most rows whole. Raises ValueError, with its number, for a row that cannot be learned from."""
    own = Data(data)
    texts = {key: column(table, getattr(data, key), key) for key in data.names}
    base = like(objective)
    words = base is not None and not base.data.tokenizer.declared.spells
    if learns_text(objective):
        all_of = sum(lengths(texts["text"], words))
        return recipe_like(own, objective, name, 2 ** int(math.log2(max(8, SHARE * all_of - 2))))
    task = task_of(data, table)
    if isinstance(task, OwnAnswers):
        texts = {"question": [one.question for one in task.all], "context": [one.context for one in task.all]}
    inputs = [lengths(texts[key], words) for key in texts if key not in ("label", "tags")]
    together = find_objective(objective).joins or data.two_texts  # one stack reads all
    longest = LONGEST_TALK if data.messages else LONGEST
    rows = sorted(sum(row) if together else max(row) for row in zip(*inputs, strict=True))
    most = rows[int(0.98 * (len(rows) - 1))] + MARKS
    count = len(task.labels) if isinstance(task, OwnLabels | OwnTags) else 0
    return recipe_like(own, objective, name, min(longest, 8 * math.ceil(most / 8)), count)


def column(table: Table, name: str, key: str) -> Sequence[str]:
    if key == "messages":
        talks = (read_conversation(cell, row, name) for row, cell in enumerate(table.cells(name), 1))
        return [" ".join(AROUND + message.text for message in talk.messages) for talk in talks]
    if key in ("tokens", "tags"):
        return [" ".join(row) for row in table.words(name)]
    return table.firsts(name) if key in ("answer", "start") else table.texts(name)


def lengths(texts: Sequence[str], words: bool) -> list[int]:
    return [len(PIECE.findall(text)) if words else len(text) for text in texts]


def recipe_like(data: Data, objective: str, name: str, context: int, classes: int = 0) -> Recipe:
    base = like(objective)
    if base is None:
        raise ValueError(f"there is no task here that is learned by {objective}; choose another way to learn.")
    longest = base.batch.context if learns_text(objective) and not classes else context
    context = min(context, longest)
    tokenizer = base.data.tokenizer
    if tokenizer.kind == "word":
        tokenizer = TokenizerRecipe("word", WORDS)
    model: ModelConfig = replace(base.model, context=context)
    if classes:
        model = replace(model, head=replace(model.head, classes=classes))
    if (head := find_objective(objective).head) != model.head.kind:
        model = replace(model, head=plain_head(head, causal=False))
    if isinstance(data.table, Columns) and data.table.two_texts and not learns_text(objective):
        model = replace(model, embedding=replace(model.embedding, segments=2))
    return replace(
        base,
        data=replace(data, tokenizer=tokenizer),
        model=model,
        batch=replace(base.batch, context=context),
        objective=replace(base.objective, kind=objective),
        about=find_objective(objective).about.format(name),
    )
