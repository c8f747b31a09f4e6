"""Parquet files, as data sets are published."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pyarrow  # type: ignore[import-untyped]
from pyarrow import parquet, types

from engine.data.table_parts import Cell, Parts, cell, check_columns, check_rows
from engine.runtime import limits

AT_ONCE = 256  # rows, which may unpack to far more than they take in the file


def read_parquet(raw: bytes) -> Parts:
    """Columns of texts, numbers and lists of them; pictures, sounds and nested tables are left out. Raises ValueError
    for what is no such file, and for one that unpacks to more than a file may have."""
    try:
        file = parquet.ParquetFile(BytesIO(raw))
        check_rows(file.metadata.num_rows)
        schema = file.schema_arrow
        columns = check_columns([field.name for field in schema if readable(field.type)])
        rows: list[tuple[Cell, ...]] = []
        taken = 0
        for batch in file.iter_batches(AT_ONCE, columns=list(columns)):
            taken += batch.nbytes
            if taken > limits.MAX_DATA:
                raise ValueError(
                    f"a file of data may have {limits.MAX_DATA / 2**20:,.0f} MiB, and this one unpacks to more; take a "
                    "part of it, or raise LOUPE_MAX_DATA_MIB where Loupe is started."
                )
            values = [batch.column(name).to_pylist() for name in columns]
            rows += [tuple(map(cell, row)) for row in zip(*values, strict=True)]
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"the file must be a Parquet file, got {str(error)[:200]}; write or fetch it again.") from None
    return Parts(columns, rows, "Parquet")


def readable(kind: Any) -> bool:
    if types.is_dictionary(kind):
        return readable(kind.value_type)
    if types.is_list(kind) or types.is_large_list(kind):
        return plain(kind.value_type)
    return plain(kind)


def plain(kind: Any) -> bool:
    tests = (types.is_string, types.is_large_string, types.is_integer, types.is_floating, types.is_boolean)
    return any(test(kind) for test in tests)
