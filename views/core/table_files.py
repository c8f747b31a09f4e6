"""Tables of named columns as files: what matrices become too, written as long tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

Format = Literal["csv", "parquet", "npz"]
FORMATS: tuple[Format, ...] = get_args(Format)
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
    """UTF-8; numbers with the digits that give the same float32 back."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(spell_floats, columns.values()), strict=True))
    return text.getvalue().encode()


def spell_floats(values: np.ndarray | Sequence[Any]) -> Iterator[Any]:
    return (str(value) if isinstance(value, np.floating) else value for value in values)


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
