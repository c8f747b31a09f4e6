"""A person's own data: rows and columns of a .txt, .csv, .tsv, .jsonl or .parquet file.

    table = read_table("reviews.csv")           # or table_of(uploaded bytes, "reviews.csv")
    table.columns, table.count, table.first(5)  # what a person chooses from, and is shown
    table.texts("review")                       # a text a row; ValueError names the row that has none

Rows are counted from 1, without the line that names the columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.data.table_csv import read_csv
from engine.data.table_jsonl import read_jsonl
from engine.data.table_parts import Cell, Parts, decoded
from engine.runtime import limits

KINDS = (".txt", ".csv", ".tsv", ".jsonl", ".parquet")
SHOWN = 200  # characters of a cell that is only looked at


@dataclass(frozen=True)
class Table:
    """`rows` have a cell for each of `columns`: a text, a list of words, or None. `told` is how the file was read."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    told: str = ""

    @property
    def count(self) -> int:
        return len(self.rows)

    def first(self, rows: int = 5) -> tuple[Mapping[str, str], ...]:
        """The first rows to look at, by column, each cell cut short."""
        cells = (zip(self.columns, row, strict=True) for row in self.rows[:rows])
        return tuple({name: shown(cell) for name, cell in row} for row in cells)

    def texts(self, column: str) -> tuple[str, ...]:
        """Raises ValueError for a column that there is not, and for the first row that has no text in it."""
        return tuple(text_of(cell, row, column) for row, cell in enumerate(self.cells(column), 1))

    def words(self, column: str) -> tuple[tuple[str, ...], ...]:
        """The words of each row, a list or a text with spaces between them. Raises ValueError as `texts`."""
        return tuple(words_of(cell, row, column) for row, cell in enumerate(self.cells(column), 1))

    def cells(self, column: str) -> Iterator[Cell]:
        if column not in self.columns:
            known = ", ".join(map(repr, self.columns))
            raise ValueError(f"the column must be one of {known[:300]}, got {column!r}; choose one of them.")
        at = self.columns.index(column)
        return (row[at] for row in self.rows)


def read_table(path: Path | str, header: bool = True) -> Table:
    """`header`: the first line of a .csv or .tsv file names its columns. A .txt file is one column, "text", with a row
    for each line that has text. Raises ValueError, in one sentence, for a file that is none of this or too large.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if size <= limits.MAX_DATA and path.is_file() else b""
    except OSError as error:
        raise ValueError(
            f"{path.name} must be a file that can be read, got {error.strerror}; bring it back, or correct the path."
        ) from None
    if not path.is_file():
        raise ValueError(f"{path.name} must be a file, got a folder; name one of the files in it.")
    check_size(size, path.name)
    return table_of(raw, path.name, header)


def table_of(raw: bytes, name: str, header: bool = True) -> Table:
    """The same of a file that was uploaded; `name` tells its kind."""
    kind = Path(name).suffix.lower()
    if kind not in KINDS:
        raise ValueError(
            f"data must be a file {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {name!r}; save it as one of them."
        )
    check_size(len(raw), name)
    found = parts_of(raw, kind, header)
    if not found.rows:
        raise ValueError(f"{name} must have at least one row of data, got none; choose a file with data in it.")
    return Table(found.columns, tuple(found.rows), found.told)


def parts_of(raw: bytes, kind: str, header: bool) -> Parts:
    if kind == ".parquet":
        from engine.data.table_parquet import read_parquet  # pyarrow is slow to import

        return read_parquet(raw)
    text, encoding = decoded(raw)
    if kind == ".txt":
        return Parts(("text",), [(line,) for line in map(str.strip, text.splitlines()) if line], encoding)
    if kind == ".jsonl":
        return read_jsonl(text, encoding)
    return read_csv(text, encoding, header, "\t" if kind == ".tsv" else None)


def check_size(size: int, name: str) -> None:
    if size > limits.MAX_DATA:
        mib = 2**20
        raise ValueError(
            f"a file of data may have {limits.MAX_DATA / mib:,.0f} MiB, and {name} has {size / mib:,.1f}; take a part "
            "of it, or raise LOUPE_MAX_DATA_MIB where Loupe is started."
        )


def shown(cell: Cell) -> str:
    text = "" if cell is None else cell if isinstance(cell, str) else " ".join(cell)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"


def text_of(cell: Cell, row: int, column: str) -> str:
    if cell is None or isinstance(cell, tuple) or not cell.strip():
        got = "a list" if isinstance(cell, tuple) else "nothing"
        raise ValueError(
            f"row {row:,} must have a text in the column {column!r}, got {got}; correct or remove the row."
        )
    return cell


def words_of(cell: Cell, row: int, column: str) -> tuple[str, ...]:
    words = cell if isinstance(cell, tuple) else tuple((cell or "").split())
    bad = next((word for word in words if not word or any(map(str.isspace, word))), None)
    if not words or bad is not None:
        got = "none" if not words else repr(bad)
        raise ValueError(
            f"row {row:,} must have words in the column {column!r}, each without a space, got {got}; correct or remove "
            "the row."
        )
    return words
