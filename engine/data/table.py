"""A person's own data: rows and columns of a .txt, .csv, .tsv, .jsonl or .parquet file.

    table = read_table("reviews.csv")           # or parse_table(uploaded bytes, "reviews.csv")
    table.columns, table.count, table.first(5)  # what a person chooses from, and is shown
    table.texts("review")                       # a text a row; ValueError names the row that has none

Rows are counted from 1, without the line that names the columns. A cell is what the file has: pandas' readers would
make 3 a 3.0 beside a missing number, fill rows that are too short, and name no row that they cannot read.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any, Literal

from engine.budget import budget
from engine.data.encodings import decode
from engine.data.parquet_footer import read_chunks
from engine.data.published import PACKED, unpack
from engine.json_text import parse_json
from engine.plurals import count_words

Cell = str | tuple[str, ...] | None
KINDS = (".txt", ".csv", ".tsv", ".jsonl", ".parquet")
MAX_ROWS = 1_000_000
MAX_COLUMNS = 1_000
MAX_CELLS = 16_000_000  # of all rows and columns; empty ones take memory too
CELL_LENGTH = 200  # characters of a cell in a preview
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
NAMED_SEPARATOR = re.compile(r'("?)sep=([^"\n])\1[ \t]*(?:\n|$)', re.IGNORECASE)  # a spreadsheet's own first line
BLANK_LINES = 4  # lines of a .txt file for each that has text, at most
LARGEST_FOOTER = 2**23  # bytes of a Parquet file's list of columns and groups of rows
PARQUET_BATCH = 256  # rows, which may unpack to far more than they take in the file
MIB = 2**20
ENCLOSED = re.compile(r'"(?:[^"]|"")*"')  # a cell as a writer that knows quotation marks puts it
csv.field_size_limit(2**31 - 1)  # the program's own: a cell is no longer than its file, which `check_size` bounds


@dataclass(frozen=True)
class Table:
    """`rows` have a cell for each of `columns`: a text, a list of words, or None. `format` is how the file was read.
    The last `held_out` rows are those of a file of their own, to be measured on alone.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    format: str = ""
    held_out: int = 0

    @property
    def count(self) -> int:
        return len(self.rows)

    def first(self, rows: int = 5) -> tuple[Mapping[str, str], ...]:
        """The first rows for a preview, by column, each cell cut short."""
        cells = (zip(self.columns, row, strict=True) for row in self.rows[:rows])
        return tuple({name: shorten(cell) for name, cell in row} for row in cells)

    def texts(self, column: str) -> tuple[str, ...]:
        """Raises ValueError for a column that there is not, and for the first row that has no text in it."""
        return tuple(require_text(cell, row, column) for row, cell in enumerate(self.cells(column), 1))

    def firsts(self, column: str) -> tuple[str, ...]:
        """The text of each row, or the first where there is a list of them. Raises ValueError as `texts`."""
        cells = ((cell[0] if cell else None) if isinstance(cell, tuple) else cell for cell in self.cells(column))
        return tuple(require_text(cell, row, column) for row, cell in enumerate(cells, 1))

    def words(self, column: str) -> tuple[tuple[str, ...], ...]:
        """The words of each row, a list or a text with spaces between them. Raises ValueError as `texts`."""
        return tuple(require_words(cell, row, column) for row, cell in enumerate(self.cells(column), 1))

    def cells(self, column: str) -> Iterator[Cell]:
        if column not in self.columns:
            known = ", ".join(map(repr, self.columns))
            raise ValueError(f"the column must be one of {known[:300]}, got {column!r:.80}; choose one of them.")
        at = self.columns.index(column)
        return (row[at] for row in self.rows)


def join_held_out(table: Table, held_out: Table, name: str) -> Table:
    """The rows of both, those `held_out` last. Raises ValueError where the file of that `name` lacks a column."""
    if lacking := [column for column in table.columns if column not in held_out.columns]:
        raise ValueError(
            f"{name} must have the columns of the data that is learned from, and lacks "
            f"{', '.join(map(repr, lacking))[:200]}; name its columns alike, or take another file."
        )
    places = [held_out.columns.index(column) for column in table.columns]
    rows = tuple(tuple(row[place] for place in places) for row in held_out.rows)
    check_rows(table.count + len(rows))
    return replace(table, rows=table.rows + rows, held_out=len(rows))


def read_table(path: Path | str, header: bool = True) -> Table:
    """`header`: the first line of a .csv or .tsv file names its columns. A .txt file is one column, "text", with a row
    for each line that has text. Raises ValueError, in one sentence, for a file that is none of this or too large.
    """
    return parse_table(*read_raw(Path(path)), header)


def read_raw(path: Path) -> tuple[bytes, str]:
    """Content of a file of data, and its name, without what it is packed by. Raises ValueError as `read_table`."""
    try:
        size = path.stat().st_size
        raw = path.read_bytes() if size <= budget.max_data and path.is_file() else b""
    except OSError as error:
        raise ValueError(
            f"{path.name} must be a file that can be read, got {error.strerror}; bring it back, or correct the path."
        ) from None
    if not path.is_file():
        raise ValueError(f"{path.name} must be a file, got a folder; name one of the files in it.")
    check_size(size, path.name)
    return unpack(raw, path.name), path.name.removesuffix(PACKED)


def parse_table(raw: bytes, name: str, header: bool = True) -> Table:
    """Reads an uploaded file as `read_table` does, whose `name` says of what kind it is."""
    kind = Path(name).suffix.lower()
    if kind not in KINDS:
        raise ValueError(
            f"data must be a file {', '.join(KINDS[:-1])} or {KINDS[-1]}, got {name!r}; save it as one of them."
        )
    check_size(len(raw), name)
    table = parse_parquet(raw) if kind == ".parquet" else parse_text(*decode(raw), kind, header)
    if not table.rows:
        raise ValueError(f"{name} must have at least one row of data, got none; choose a file with data in it.")
    return table


def parse_text(text: str, encoding: str, kind: str, header: bool) -> Table:
    if kind == ".txt":
        check_rows(text.count("\n") // BLANK_LINES)
        lines = [line.strip(" \t") for line in text.split("\n") if line.strip()]
        check_rows(len(lines))
        return Table(("text",), tuple((line,) for line in lines), encoding)
    if kind == ".jsonl":
        return parse_jsonl(text, encoding)
    if named := NAMED_SEPARATOR.match(text):
        return parse_csv("\n" + text[named.end() :], encoding, header, named[2])  # lines count as they do in the file
    return parse_csv(text, encoding, header, "\t" if kind == ".tsv" else find_separator(text))


def parse_csv(text: str, encoding: str, header: bool, separator: str) -> Table:
    """Raises ValueError for the first row with more or fewer cells than the first line."""
    enclosed = separator != "\t" or encloses_cells(text)
    lines = split_cells(text, separator, enclosed)
    first = next(lines, [])
    check_column_count(len(first))
    named = [name.strip() for name in first] if header else [""] * len(first)
    columns = check_columns([name or f"column {n}" for n, name in enumerate(named, 1)])
    marks = f", quotation marks {'around cells' if enclosed else 'are letters'}"
    told = marks if separator == "\t" and '"' in text else ""
    rows: list[tuple[Cell, ...]] = [] if header or not first else [tuple(cell or None for cell in first)]
    for line in lines:
        check_rows(len(rows) + 1)
        check_cells((len(rows) + 1) * len(columns))
        if len(line) != len(columns):
            raise ValueError(
                f"row {len(rows) + 1:,} must have {count_words(len(columns), 'cell')} as the first line has, got "
                f"{len(line)}; put "
                f"quotation marks around a cell with {name_separator(separator)} in it, or remove the row."
            )
        rows.append(tuple(cell or None for cell in line))
    return Table(columns, tuple(rows), f"{encoding}, {name_separator(separator)} between the columns{told}")


def split_cells(text: str, separator: str, enclosed: bool) -> Iterator[list[str]]:
    """Yields the cells of each line that has any, `enclosed` in quotation marks where they need it. Raises ValueError
    for the first that does not read."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if enclosed else csv.QUOTE_NONE
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True, quoting=quoting)
    count = 0
    try:
        for line in reader:
            if line:
                count += 1
                yield line
    except csv.Error as error:
        raise ValueError(
            f"row {max(count, 1):,}, line {reader.line_num:,} of the file, must be cells with "
            f"{name_separator(separator)} between them, got {error}; correct or remove the row."
        ) from None


def encloses_cells(text: str) -> bool:
    """Tells whether quotation marks stand around cells of a text with tabs between them, as pandas and spreadsheets
    write it, or are letters, as in files without quoting (GLUE's).

    Where lines cut at each tab differ in length, a tab or a line end is inside a cell, and marks enclose it if all rows
    are of one length so. Otherwise they enclose if every cell with one is enclosed, those inside doubled, as a writer
    leaves it, and one needed it, all the names of columns have it, or all cells below one of them.
    """
    if '"' not in text:
        return False
    lines = [line for line in text.split("\n") if line]
    if len({line.count("\t") for line in lines}) > 1:
        try:
            reader = csv.reader(StringIO(text, newline=""), "excel-tab", strict=True)
            return len({len(row) for row in reader if row}) == 1
        except csv.Error:
            return False
    needed, needless, bare = False, set[int](), set[int]()
    for row, line in enumerate(lines):
        cells = line.split("\t")
        enclosed = ['"' in cell and ENCLOSED.fullmatch(cell) is not None for cell in cells]
        if any('"' in cell and not whole for cell, whole in zip(cells, enclosed, strict=True)):
            return False
        needed |= any('"' in cell[1:-1] for cell in cells) or (row == 0 and all(enclosed))
        if row:
            needless.update(n for n, whole in enumerate(enclosed) if whole and '"' not in cells[n][1:-1])
            bare.update(n for n, cell in enumerate(cells) if cell and not enclosed[n])
    return needed or (bool(needless) and not needless & bare)


def name_separator(separator: str) -> str:
    return SEPARATORS.get(separator, repr(separator))


def find_separator(text: str) -> str:
    """The one that gives all rows the same number of cells, and most of them. Where none does, that which gives most
    rows as many as the first has, so that a row that is wrong is named; a comma if there is none in the first."""

    def fit(separator: str) -> tuple[bool, int, int]:
        lines = split_cells(text, separator, separator != "\t" or (separator in text and encloses_cells(text)))
        rows = alike = first = 0
        try:
            for line in lines:
                rows, first = rows + 1, first or len(line)
                if first < 2:
                    break
                alike += len(line) == first
        except ValueError:
            rows += 1
        return (alike == rows, alike, first) if alike else (False, 0, 0)

    return max(SEPARATORS, key=fit)


def parse_jsonl(text: str, encoding: str) -> Table:
    """An object a line. Raises ValueError for the first row that is no object."""
    lines = (line for line in text.split("\n") if line.strip())
    return tabulate((parse_object(line, row) for row, line in enumerate(lines, 1)), encoding)


def tabulate(objects: Iterable[Mapping[str, Any]], told: str) -> Table:
    """A row for each object, of JSON or of Arrow. The columns are all keys in the order they come; a row without one
    has None there. Raises ValueError for more than a file may have."""
    columns: dict[str, None] = {}
    rows: list[tuple[Cell, ...]] = []
    words = 0
    for one in objects:
        check_rows(len(rows) + 1)
        row = split_lists(one)
        words += sum(len(value) for value in row.values() if isinstance(value, list))
        check_cells(words)
        if not row.keys() <= columns.keys():
            columns |= dict.fromkeys(row)
            check_columns(tuple(columns))
        rows.append(tuple(to_cell(row.get(name)) for name in columns))
    check_cells(len(rows) * len(columns))
    return Table(tuple(columns), tuple(row + (None,) * (len(columns) - len(row)) for row in rows), told)


def parse_object(line: str, row: int) -> dict[str, Any]:
    try:
        value = parse_json(line)
    except ValueError as error:
        raise ValueError(f"row {row:,} must be a JSON object: {error}; correct or remove the row.") from None
    if not isinstance(value, dict):
        raise ValueError(
            f'row {row:,} must be a JSON object, such as {{"text": "..."}}, got {line.strip()[:40]!r}; correct or '
            "remove the row."
        )
    return value


def split_lists(row: Mapping[str, Any]) -> dict[str, Any]:
    """`row` with a column "answers.text" for each list "text" of an object "answers" that has nothing but lists, as
    data sets of questions have them (Rajpurkar et al. 2016). One of another name that is there already stays an object.
    """
    found: dict[str, Any] = {}
    for name, value in row.items():
        lists = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {}
        if lists and all(isinstance(each, list) for each in lists.values()) and lists.keys().isdisjoint(row):
            found |= lists
        else:
            found[name] = value
    return found


def parse_parquet(raw: bytes) -> Table:
    """The table that the same rows in JSON Lines are. Columns with bytes in them, as of pictures and sounds, are left
    out, and `format` names them. Raises ValueError as `open_parquet`."""
    with open_parquet(raw) as (file, columns):
        left = [field.name for field in file.schema_arrow if field.name not in columns]
        told = f"Parquet without {', '.join(map(repr, left))}, which no text can say"[:300] if left else "Parquet"
        return tabulate(iterate_parquet(file, columns), told)


@contextmanager
def open_parquet(raw: bytes) -> Iterator[tuple[Any, tuple[str, ...]]]:
    """An Arrow `ParquetFile` and those of its columns that JSON has cells of. Raises ValueError for what is no such
    file, also from within, and for one that unpacks to more than a file may have: by its own sizes before any of it is
    read, then by what comes."""
    import pyarrow  # type: ignore[import-untyped]  # slow to import
    from pyarrow import parquet

    footer = int.from_bytes(raw[-8:-4], "little")
    try:
        if footer > LARGEST_FOOTER:
            raise pyarrow.ArrowInvalid
        metadata = parquet.read_metadata(BytesIO(raw))
        leaves = [metadata.schema.column(n) for n in range(metadata.num_columns)]
        texts = {leaf.path for leaf in leaves if leaf.physical_type == "BYTE_ARRAY"}
        file = parquet.ParquetFile(BytesIO(raw), read_dictionary=sorted(texts))  # a text that comes often is kept once
        check_rows(metadata.num_rows)
        columns = check_columns([field.name for field in file.schema_arrow if is_readable(field.type)])
        check_cells(metadata.num_rows * len(columns))
        whole = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
        if whole > budget.max_data or any(leaf.max_repetition_level for leaf in leaves):  # lists may have many values
            chosen = [one for one in read_chunks(raw[-footer - 8 :]) if one.path.split(".")[0] in columns]
            check_unpacked(sum(one.size for one in chosen))
            check_cells(sum(one.values for one in chosen))
        yield file, columns
    except (pyarrow.ArrowException, OSError, UnicodeError, LookupError, MemoryError, OverflowError):
        raise ValueError(
            "the file must be a Parquet file, got a damaged one or something else; write or fetch it again."
        ) from None


def iterate_parquet(file: Any, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    unpacked = 0
    for batch in file.iter_batches(PARQUET_BATCH, columns=list(columns)):
        unpacked += sum(map(unpacked_bytes, batch.columns))
        check_unpacked(unpacked)
        values = [batch.column(name).to_pylist(maps_as_pydicts="lossy") for name in columns]
        yield from (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))


def unpacked_bytes(column: Any) -> int:
    """Bytes of an Arrow column's values, each as often as it is there."""
    from pyarrow import compute, types

    if types.is_struct(column.type):
        return sum(map(unpacked_bytes, column.flatten()))
    if types.is_map(column.type):
        return unpacked_bytes(column.keys) + unpacked_bytes(column.items)
    if types.is_nested(column.type):  # all kinds of lists
        return unpacked_bytes(column.flatten())
    if not types.is_dictionary(column.type):
        return int(column.nbytes)
    words = column.dictionary
    if not (types.is_string(words.type) or types.is_large_string(words.type)):
        return int(column.indices.nbytes) * 2  # a number has at most twice the bytes of its index
    return int(compute.sum(compute.binary_length(words).take(column.indices)).as_py() or 0)


def is_readable(kind: Any) -> bool:
    """Tells whether JSON has cells of this Arrow type: no bytes stand anywhere in them."""
    from pyarrow import BaseExtensionType, types

    if types.is_dictionary(kind):
        return is_readable(kind.value_type)
    if isinstance(kind, BaseExtensionType):
        return is_readable(kind.storage_type)
    if types.is_nested(kind):
        return all(is_readable(kind.field(n).type) for n in range(kind.num_fields))
    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_primitive, types.is_decimal)
    return types.is_null(kind) or any(test(kind) for test in tests)


def check_size(size: int, name: str) -> None:
    if size > budget.max_data:
        raise ValueError(
            f"a file of data may have {budget.max_data / MIB:,.0f} MiB, and {name} has {size / MIB:,.1f}; take a part "
            "of it, or raise LOUPE_MAX_DATA_MIB where Loupe is started."
        )


def check_rows(rows: int) -> None:
    if rows > MAX_ROWS:
        raise ValueError(f"a file of data may have {MAX_ROWS:,} rows, got more; take a part of it.")


def check_cells(cells: int) -> None:
    if cells > MAX_CELLS:
        raise ValueError(
            f"a file of data may have {MAX_CELLS:,} cells and words, got {cells:,}; take a part of it, or leave out "
            "columns."
        )


def check_unpacked(size: int) -> None:
    if size > budget.max_data:
        raise ValueError(
            f"a file of data may have {budget.max_data / MIB:,.0f} MiB, and this one unpacks to more; take a "
            "part of it, or raise LOUPE_MAX_DATA_MIB where Loupe is started."
        )


def check_column_count(count: int) -> None:
    if count > MAX_COLUMNS:
        raise ValueError(f"a file of data may have {MAX_COLUMNS:,} columns, got {count:,}; leave some out.")


def check_columns(names: Sequence[str]) -> tuple[str, ...]:
    """Raises ValueError where two are called the same, or there are too many."""
    check_column_count(len(names))
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise ValueError(f"each column must have a name of its own, and two are called {twice[:80]!r}; rename one.")
    return tuple(names)


def to_cell(value: Any) -> Cell:
    """Cell of a value of JSON or Arrow. Numbers are their digits, dates and times their text, a list its
    words, an object its JSON."""
    if isinstance(value, list | tuple):
        return tuple(to_text(one) for one in value)
    return None if value is None or value != value else to_text(value)  # not a number is none


def to_text(value: Any) -> str:
    if isinstance(value, bool | int | float | dict | list | tuple) or value is None:
        return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def shorten(cell: Cell) -> str:
    text = "" if cell is None else cell if isinstance(cell, str) else " ".join(cell)
    return text if len(text) <= CELL_LENGTH else f"{text[: CELL_LENGTH - 1]}…"


def require_text(cell: Cell, row: int, column: str) -> str:
    if cell is None or isinstance(cell, tuple) or not cell.strip():
        got = "a list" if isinstance(cell, tuple) else "nothing"
        raise ValueError(
            f"row {row:,} must have a text in the column {column!r:.80}, got {got}; correct or remove the row."
        )
    return cell


def require_words(cell: Cell, row: int, column: str) -> tuple[str, ...]:
    words = cell if isinstance(cell, tuple) else tuple((cell or "").split())
    bad = next((word for word in words if not word or any(map(str.isspace, word))), None)
    if not words or bad is not None:
        got = "none" if not words else f"{bad!r:.80}"
        raise ValueError(
            f"row {row:,} must have words in the column {column!r:.80}, each without a space, got {got}; correct or "
            "remove the row."
        )
    return words
