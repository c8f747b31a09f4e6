"""What the footer of a Parquet file says of its columns, read in a process of its own.

Of a footer that is damaged, Arrow may end the process that asks for a column's sizes, which no `except` catches.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import lru_cache
from io import BytesIO
from typing import NamedTuple

from engine.json_text import parse_json
from engine.places import ROOT

MAGIC = b"PAR1"
PATIENCE = 30  # seconds, on a machine that has other things to do


class ColumnChunk(NamedTuple):
    """A column of one group of rows: its bytes unpacked, and its values."""

    path: str
    size: int
    values: int


@lru_cache(maxsize=64)
def read_chunks(footer: bytes) -> tuple[ColumnChunk, ...]:
    """Chunks of a file whose last bytes, from the footer on, are these. Raises OSError for what is damaged."""
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "engine.data.parquet_footer"], input=MAGIC + footer, timeout=PATIENCE, check=True,
            cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.SubprocessError:
        raise OSError("the footer of the file does not read") from None
    return tuple(ColumnChunk(*one) for one in parse_json(ended.stdout))


def main() -> None:
    from pyarrow import parquet  # type: ignore[import-untyped]  # slow to import

    metadata = parquet.read_metadata(BytesIO(sys.stdin.buffer.read()))
    groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
    chunks = [group.column(n) for group in groups for n in range(group.num_columns)]
    json.dump([(one.path_in_schema, one.total_uncompressed_size, one.num_values) for one in chunks], sys.stdout)


if __name__ == "__main__":
    main()
