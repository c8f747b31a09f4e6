"""Pairs of answers of which one is preferred: read from a person's own table, and written as one.

pairs = read_pairs("preferences.jsonl")     # or parse_pairs(uploaded bytes, "preferences.csv")
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, fields
from io import StringIO
from pathlib import Path

from engine.data.table import Table, parse_table, read_table


@dataclass(frozen=True)
class PreferencePair:
    """Two different answers to a prompt, which may be empty."""

    prompt: str
    chosen: str
    rejected: str


COLUMNS = tuple(field.name for field in fields(PreferencePair))


def read_pairs(path: Path | str) -> tuple[PreferencePair, ...]:
    """The pairs of a file that `engine.data.table.read_table` reads, a row each.

    Raises ValueError, in one sentence, for a file that is none or too large, one without a row or a column that is
    needed, and the first row without an answer or with one answer twice.
    """
    return to_pairs(read_table(path))


def parse_pairs(raw: bytes, name: str) -> tuple[PreferencePair, ...]:
    """Reads an uploaded file as `read_pairs` does, whose `name` says of what kind it is."""
    return to_pairs(parse_table(raw, name))


def to_pairs(table: Table) -> tuple[PreferencePair, ...]:
    if not set(COLUMNS) <= set(table.columns):
        known = ", ".join(map(repr, table.columns))
        raise ValueError(
            f"pairs must have the columns prompt, chosen and rejected, and this table has {known[:300]}; rename or add "
            "columns."
        )
    prompts = ["" if cell is None else cell for cell in table.cells("prompt")]
    rows = zip(prompts, table.texts("chosen"), table.texts("rejected"), strict=True)
    return tuple(new_pair(row, *cells) for row, cells in enumerate(rows, 1))


def new_pair(row: int, prompt: str | tuple[str, ...], chosen: str, rejected: str) -> PreferencePair:
    if isinstance(prompt, tuple):
        raise ValueError(f"row {row:,} must have a text or nothing as its prompt, got a list; write it as one text.")
    if chosen == rejected:
        raise ValueError(
            f"row {row:,} must have two different answers, got {chosen!r:.80} twice; correct or remove the row."
        )
    return PreferencePair(prompt, chosen, rejected)


def format_jsonl(pairs: Iterable[PreferencePair]) -> str:
    return "".join(json.dumps(asdict(pair), ensure_ascii=False) + "\n" for pair in pairs)


def format_csv(pairs: Iterable[PreferencePair]) -> str:
    file = StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(map(astuple, pairs))
    return file.getvalue()
