"""Tables of named columns as files: what matrices become too, written as long tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

Format = Literal["csv", "parquet", "npz"]
FORMATS: tuple[Format, ...] = get_args(Format)
FORMULA = tuple("=+-@＝＋－＠\t\r")  # with which a cell of a spreadsheet begins to compute
Columns = Mapping[str, np.ndarray | Sequence[Any]]


@dataclass(frozen=True)
class Table:
    """Columns of one length by name; `about` says what they are of."""

    columns: Columns
    about: Mapping[str, str]


def table_file(table: Table, format: Format) -> bytes:
    if format == "csv":
        return csv_of(table.columns)
    if format == "parquet":
        return parquet_of(table.columns, table.about)
    arrays = {name: as_array(column) for name, column in table.columns.items()}
    return npz_of({**arrays, **table.about})


def csv_of(columns: Columns) -> bytes:
    """UTF-8 as RFC 4180 has it, with the mark by which Excel knows it where a letter needs it; numbers with the digits
    that give the same float32 back; no cell is a formula in a spreadsheet (OWASP, CSV injection)."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*(map(spell_cell, values) for values in columns.values()), strict=True))
    found = text.getvalue()
    return found.encode("ascii" if found.isascii() else "utf-8-sig")


def spell_cell(value: Any) -> Any:
    if isinstance(value, str):
        return f"'{value}" if len(value) > 1 and value.startswith(FORMULA) else value
    return str(value) if isinstance(value, np.floating) else value


def parquet_of(columns: Columns, about: Mapping[str, str]) -> bytes:
    import pyarrow  # type: ignore[import-untyped]
    import pyarrow.parquet  # type: ignore[import-untyped]

    table = pyarrow.table({name: pyarrow.array(values) for name, values in columns.items()})
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table.replace_schema_metadata(dict(about)), sink)
    return bytes(sink.getvalue().to_pybytes())


def npz_of(arrays: Mapping[str, Any]) -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, **arrays)
    return sink.getvalue()


def as_array(column: np.ndarray | Sequence[Any]) -> np.ndarray:
    """Text as unicode, so that `numpy.load` needs no pickle."""
    found = np.asarray(column)
    return found.astype(np.str_) if found.dtype == object else found
