"""What the readers of the different files share: cells, the encoding of a text, and how much there may be."""

from __future__ import annotations

import json
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Cell = str | tuple[str, ...] | None
MAX_ROWS = 1_000_000
MAX_COLUMNS = 1_000


@dataclass(frozen=True)
class Parts:
    columns: tuple[str, ...]
    rows: list[tuple[Cell, ...]]
    told: str = ""


def decoded(raw: bytes) -> tuple[str, str]:
    """The text of a file and its encoding: UTF-8, UTF-16 where it says so itself, else Windows-1252."""
    encodings = ["utf-16"] if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)) else ["utf-8-sig", "cp1252"]
    for encoding in encodings:
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\0" not in text:
            named = {"utf-16": "UTF-16", "utf-8-sig": "UTF-8", "cp1252": "Windows-1252"}[encoding]
            return text.replace("\r\n", "\n").replace("\r", "\n"), named
    raise ValueError("the file must be a text, and is none in UTF-8, UTF-16 or Windows-1252; save it as UTF-8.")


def check_rows(rows: int) -> None:
    if rows > MAX_ROWS:
        raise ValueError(f"a file of data may have {MAX_ROWS:,} rows, got more; take a part of it.")


def check_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Raises ValueError where two are called the same, or there are too many."""
    if len(names) > MAX_COLUMNS:
        raise ValueError(f"a file of data may have {MAX_COLUMNS:,} columns, got {len(names):,}; leave some out.")
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"each column must have a name of its own, and two are called {twice[:80]!r}; rename one.")
    return tuple(names)


def cell(value: Any) -> Cell:
    """Of JSON or Arrow. Numbers are their digits, a list its words, a table its JSON."""
    if value is None or value != value:  # not a number
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return tuple(one if isinstance(one, str) else json.dumps(one, default=str) for one in value)
    return json.dumps(value, ensure_ascii=False, default=str)
