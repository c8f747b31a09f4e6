"""Pairs of answers of which one is preferred: read from a person's own table, and written as one.

pairs = read_pairs("preferences.jsonl")     # or parse_pairs(uploaded bytes, "preferences.csv")
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from io import StringIO
from itertools import islice, repeat, takewhile
from os.path import commonprefix
from pathlib import Path
from typing import Any, Literal

from engine.conversations import Conversation, read_templates
from engine.conversations.conversation import ASSISTANT
from engine.conversations.render import render_each
from engine.conversations.template import choose_template, named_tokens
from engine.data.table import Cell, Table, parse_table, read_table
from engine.json_text import parse_json
from engine.tokenizers import Tokenizer

COLUMNS = ("prompt", "chosen", "rejected")
Form = Literal["text", "messages", "rendered"]


@dataclass(frozen=True)
class PreferencePair:
    """Two different answers to a prompt, which may be empty. Of a conversation all three are lists of `messages` in
    JSON, until `render_pairs` has `rendered` them."""

    prompt: str
    chosen: str
    rejected: str
    form: Form = "text"


def read_pairs(path: Path | str) -> tuple[PreferencePair, ...]:
    """The pairs of a file that `engine.data.table.read_table` reads, a row each.

    Prompts and answers are texts, or lists of messages with role and content. Raises ValueError, in one sentence, for
    a file that is none or too large, one without a row or a column that is needed, and the first row without an answer
    or with one answer twice.
    """
    return to_pairs(read_table(path))


def parse_pairs(raw: bytes, name: str) -> tuple[PreferencePair, ...]:
    """Reads an uploaded file as `read_pairs` does, whose `name` says of what kind it is."""
    return to_pairs(parse_table(raw, name))


def to_pairs(table: Table) -> tuple[PreferencePair, ...]:
    talks = {"chosen", "rejected"} <= set(table.columns) and all(
        read_messages(cell) is not None for name in ("chosen", "rejected") for cell in islice(table.cells(name), 1)
    )
    if talks:
        prompts = table.cells("prompt") if "prompt" in table.columns else repeat(None)
        rows = zip(prompts, table.cells("chosen"), table.cells("rejected"), strict=False)
        return tuple(new_talk(row, *cells) for row, cells in enumerate(rows, 1))
    if not set(COLUMNS) <= set(table.columns):
        known = ", ".join(map(repr, table.columns))
        raise ValueError(
            f"pairs must have the columns prompt, chosen and rejected, and this table has {known[:300]}; rename or add "
            "columns."
        )
    texts = ["" if cell is None else cell for cell in table.cells("prompt")]
    pairs = zip(texts, table.texts("chosen"), table.texts("rejected"), strict=True)
    return tuple(new_pair(row, *cells) for row, cells in enumerate(pairs, 1))


def new_pair(row: int, prompt: str | tuple[str, ...], chosen: str, rejected: str) -> PreferencePair:
    if isinstance(prompt, tuple):
        raise ValueError(f"row {row:,} must have a text or nothing as its prompt, got a list; write it as one text.")
    if chosen == rejected:
        raise ValueError(
            f"row {row:,} must have two different answers, got {chosen!r:.80} twice; correct or remove the row."
        )
    return PreferencePair(prompt, chosen, rejected)


def read_messages(cell: Cell) -> list[Any] | None:
    """The messages of a cell, a list or one in JSON; None where it is something else."""
    try:
        found = [parse_json(one) for one in cell] if isinstance(cell, tuple) else parse_json(cell or "")
    except ValueError:
        return None
    whole = isinstance(found, list) and all(isinstance(one, dict) and "role" in one for one in found)
    return found if whole and found else None


def new_talk(row: int, prompt: Cell, chosen: Cell, rejected: Cell) -> PreferencePair:
    """A pair of conversations. Where the prompt is no list of messages, it is what both begin with (as in TRL)."""
    two = [read_messages(chosen), read_messages(rejected)]
    if two[0] is None or two[1] is None:
        got = chosen if two[0] is None else rejected
        raise ValueError(f"row {row:,} must have lists of messages as its answers, got {str(got)[:80]!r}; correct it.")
    asked, answers = read_messages(prompt), (two[0], two[1])
    if asked is None:
        count = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(*answers, strict=False)))
        asked, answers = answers[0][:count], (answers[0][count:], answers[1][count:])
    ends = [one[0].get("role") if one else None for one in answers]
    if not asked or asked[-1].get("role") == ASSISTANT or ends != [ASSISTANT, ASSISTANT]:
        raise ValueError(
            f"row {row:,} must have two different answers of the {ASSISTANT} behind a message of another's; correct or "
            "remove the row."
        )
    for part in (asked, *answers):
        try:
            Conversation.from_dict(part)
        except ValueError as error:
            raise ValueError(f"row {row:,}: {error}") from None
    first, second, third = (json.dumps(part, ensure_ascii=False) for part in (asked, *answers))
    return PreferencePair(first, second, third, "messages")


def render_pairs(tokenizer: Tokenizer, pairs: Sequence[PreferencePair]) -> tuple[PreferencePair, ...]:
    """Pairs of conversations as the chat template writes them, cut as TRL's `apply_chat_template` does: the prompt is
    what its rendering and those of both answers begin with. Texts stay as they are.

    Raises ValueError where the tokenizer has no template, and with the number of the first row that it refuses.
    """
    if all(pair.form != "messages" for pair in pairs):
        return tuple(pairs)
    talks = [[parse_json(text) for text in (pair.prompt, pair.chosen, pair.rejected)] for pair in pairs]
    prompts = [Conversation.from_dict(asked) for asked, *_ in talks]
    template, tokens = choose_template(read_templates(tokenizer), prompts[0]), named_tokens(tokenizer)
    whole = ([Conversation.from_dict(one[0] + one[n]) for one in talks] for n in (1, 2))
    each = (
        render_each(prompts, template, tokens, add_generation_prompt=True),
        *(render_each(one, template, tokens) for one in whole),
    )
    found = list[PreferencePair]()
    for row in range(1, len(pairs) + 1):
        try:
            prompt, chosen, rejected = (next(one).text for one in each)
        except ValueError as error:
            raise ValueError(f"row {row:,}: {error}") from None
        cut = len(commonprefix([prompt, chosen, rejected]))
        found.append(PreferencePair(prompt[:cut], chosen[cut:], rejected[cut:], "rendered"))
    return tuple(found)


def format_jsonl(pairs: Iterable[PreferencePair]) -> str:
    def value(pair: PreferencePair, name: str) -> Any:
        return parse_json(getattr(pair, name)) if pair.form == "messages" else getattr(pair, name)

    rows = ({name: value(pair, name) for name in COLUMNS} for pair in pairs)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def format_csv(pairs: Iterable[PreferencePair]) -> str:
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(pair)[: len(COLUMNS)] for pair in pairs)
    return file.getvalue()
