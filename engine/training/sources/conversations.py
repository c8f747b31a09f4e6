"""Conversations, of which a decoder learns what the assistant wrote."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from torch import Tensor

from engine.conversations import Conversation, Written, read_templates, read_written
from engine.conversations.conversation import ASSISTANT, INSTRUCTS
from engine.data.documents import Document, Documents
from engine.data.drawing import Part
from engine.data.own import Columns
from engine.data.own_tasks import Own
from engine.data.table import Cell, shorten
from engine.json_text import parse_json
from engine.scoring.examples import UNASKED, Examples
from engine.tokenizers import Tokenizer
from engine.training.base.base import tokenizer_of
from engine.training.recipe.recipe import Recipe
from engine.training.sources.corpus import Tokens
from engine.training.sources.shelved_texts import ShelvedTexts

IDS, ASKED = 0, 1  # parts of a document


@dataclass(frozen=True)
class OwnConversations(Own):
    @cached_property
    def all(self) -> tuple[Conversation, ...]:
        """Raises ValueError for the first row that is none in which an assistant answers."""
        column = self.options.messages
        return tuple(read_conversation(cell, row, column) for row, cell in enumerate(self.table.cells(column), 1))

    def conversations(self, part: Part, seed: int) -> dict[int, Conversation]:
        """Conversations by the number of their row, from 1; what stands before the first answer is in one part
        alone."""
        keys = [json.dumps(one.to_dict()["messages"][: first_answer(one)]) for one in self.all]
        return {row + 1: self.all[row] for row in self.rows(keys, part, seed)}


def read_conversation(cell: Cell, row: int, column: str) -> Conversation:
    try:
        found = Conversation.from_dict([parse_json(one) for one in cell] if isinstance(cell, tuple) else cell)
    except ValueError as error:
        got = "nothing" if cell is None else shorten(cell)[:80]
        raise ValueError(
            f"row {row:,} must have a list of messages with role and content in the column {column!r:.80}, got "
            f"{got!r}: {error}"
        ) from None
    at = first_answer(found)
    if at is None or all(message.role in INSTRUCTS for message in found.messages[:at]):
        got = ", ".join(message.role for message in found.messages)[:80]
        raise ValueError(
            f"row {row:,} must have a message of the {ASSISTANT} behind one of the user, got {got}; correct or remove "
            "the row."
        )
    return found


def first_answer(conversation: Conversation) -> int | None:
    return next((at for at, one in enumerate(conversation.messages) if one.role == ASSISTANT), None)


@dataclass(frozen=True)
class Told(Document):
    """A rendered conversation."""

    written: Written = Written("", (), ())


class Conversations(ShelvedTexts[Conversation]):
    """Conversations as the base's chat template writes them; one that is too long for the context is left out."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        options = recipe.data.table
        assert isinstance(options, Columns)  # as the objective says
        self.task = task = OwnConversations(options, options.table())
        tokenizer = tokenizer_with_template(recipe)

        def tell(part: Part) -> Iterator[Document]:
            told = read_written(tokenizer, task.conversations(part, recipe.data_seed))
            return (Told((one.text,), written=one) for one in told)

        super().__init__(recipe, folder, Documents(lambda: tell("train"), lambda: tell("held_out"), read=read_told))

    def task_examples(self, part: Part) -> Iterator[Conversation]:
        return iter(self.task.conversations(part, self.recipe.data_seed).values())

    def lengths(self, tokens: Tokens) -> Tensor:
        return tokens.lengths[:, IDS] - 1  # the last token is not read

    def examples(self, part: Part, indexes: Sequence[int]) -> Examples:
        tokens = self.shelves[part].tokens
        rows, asked = tokens.rows(indexes, IDS), tokens.rows(indexes, ASKED)
        read = rows.real[:, 1:]  # what is followed by a token
        inputs = {"ids": rows.ids[:, :-1].masked_fill(~read, self.fill)}
        if not read.all():
            inputs["padding"] = read
        return Examples(inputs, asked.fill_padding(UNASKED)[:, 1:], whole=True)


def tokenizer_with_template(recipe: Recipe) -> Tokenizer:
    """Tokenizer of the base. Raises ValueError where there is none, or no chat template."""
    if not recipe.base:
        raise ValueError(
            "base must name a model with a chat template, which learns from conversations, got none; add a base, or "
            "learn on the page Adapt."
        )
    tokenizer = tokenizer_of(recipe.base)
    if not read_templates(tokenizer):
        raise ValueError(
            f"base must have a chat template to learn from conversations, and {recipe.base} has none; choose another "
            "base."
        )
    return tokenizer


def read_told(_: Tokenizer, document: Document) -> list[list[int]]:
    """Ids, and the same with UNASKED for each that the assistant did not write, TRL's labels."""
    assert isinstance(document, Told)
    one = document.written
    return [list(one.ids), [id if wrote else UNASKED for id, wrote in zip(one.ids, one.mask, strict=True)]]
