"""JSON lines: an object a line, whose keys are the columns."""

from __future__ import annotations

import json
from typing import Any

from engine.data.table_parts import Parts, cell, check_columns, check_rows


def read_jsonl(text: str, encoding: str) -> Parts:
    """The columns are all keys in the order they come; a row without one has None there. Raises ValueError for the
    first row that is no object."""
    objects: list[dict[str, Any]] = []
    columns: dict[str, None] = {}
    for line in text.split("\n"):
        if line.strip():
            check_rows(len(objects) + 1)
            objects.append(object_of(line, len(objects) + 1))
            if not objects[-1].keys() <= columns.keys():
                columns |= dict.fromkeys(objects[-1])
                check_columns(tuple(columns))
    return Parts(tuple(columns), [tuple(cell(one.get(name)) for name in columns) for one in objects], encoding)


def object_of(line: str, row: int) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        said = "what is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ValueError(f"row {row:,} must be a JSON object, got {said}; correct or remove the row.") from None
    if not isinstance(found, dict):
        raise ValueError(
            f"row {row:,} must be a JSON object, such as {{\"text\": \"...\"}}, got {line.strip()[:40]!r}; correct or "
            "remove the row."
        )
    return found
