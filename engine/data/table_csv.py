"""Comma-separated values, whatever separates them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from io import StringIO
from itertools import islice

from engine.data.table_parts import Parts, check_columns, check_rows

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
TRIED = 50  # rows from which the separator is told


def read_csv(text: str, encoding: str, header: bool = True, separator: str | None = None) -> Parts:
    """`separator` None is told from the first rows. Raises ValueError for the first row with more or fewer cells."""
    chosen = separator or told_separator(text)
    lines = cells(text, chosen)
    first = next(lines, [])
    columns = named(first) if header else tuple(f"column {n}" for n in range(1, len(first) + 1))
    check_columns(columns)
    rows: list[tuple[str | None, ...]] = [] if header or not first else [tuple(one or None for one in first)]
    for line in lines:
        check_rows(len(rows) + 1)
        if len(line) != len(columns):
            raise ValueError(
                f"row {len(rows) + 1:,} must have {len(columns)} cells as the first line has, got {len(line)}; put "
                f"quotation marks around a cell with {SEPARATORS[chosen]} in it, or remove the row."
            )
        rows.append(tuple(one or None for one in line))
    return Parts(columns, list(rows), f"{encoding}, {SEPARATORS[chosen]} between the columns")


def cells(text: str, separator: str) -> Iterator[list[str]]:
    """Lines without a cell are left out."""
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    count = 0
    while True:
        try:
            line = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise ValueError(
                f"row {max(count, 1):,}, line {reader.line_num:,} of the file, must be cells with "
                f"{SEPARATORS[separator]} between them, got {error}; correct or remove the row."
            ) from None
        if line:
            count += 1
            yield line


def told_separator(text: str) -> str:
    """The one that gives every one of the first rows the same number of cells, and most of them; a comma if none."""
    return max(SEPARATORS, key=lambda separator: width(text, separator))


def width(text: str, separator: str) -> tuple[bool, int]:
    try:
        counts = [len(line) for line in islice(cells(text, separator), TRIED)]
    except ValueError:
        return False, 0
    return len(set(counts)) == 1 and counts[0] > 1, counts[0] if counts else 0


def named(first: list[str]) -> tuple[str, ...]:
    return tuple(name.strip() or f"column {n}" for n, name in enumerate(first, 1))
