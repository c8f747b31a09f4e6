"""Reads on in files that grow by whole records and are sometimes replaced as a whole."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

KNOWN = 64  # bytes before a place that tell whether the file is still the one that was read


@dataclass(frozen=True)
class LogPosition:
    """Place up to which a file was read; `before` are the last bytes of that. The default is the beginning of any
    file."""

    file: int = 0
    offset: int = 0
    before: bytes = b""


@dataclass(frozen=True)
class Chunk:
    """`data` are whole records. `anew`: the file is another one than at the last place, and they are all of it."""

    data: bytes
    place: LogPosition
    anew: bool


def read_appended(path: Path, place: LogPosition, whole: Callable[[bytes], int]) -> Chunk:
    """Reads what was appended since `place`. `whole` counts the bytes of its argument that are whole records. A missing
    file reads as an empty one."""
    try:
        with open(path, "rb", buffering=0) as file:
            stat = os.fstat(file.fileno())
            if stat.st_ino == place.file and stat.st_size == place.offset:
                return Chunk(b"", place, False)
            start = place.offset - len(place.before)
            file.seek(start)
            same = stat.st_size >= place.offset and file.read(len(place.before)) == place.before
            if not same:
                file.seek(0)
            data = file.read()
    except FileNotFoundError:
        return Chunk(b"", LogPosition(), place.offset > 0)
    offset = place.offset if same else 0
    data = data[: whole(data)]
    before = ((place.before if same else b"") + data)[-KNOWN:]
    return Chunk(data, LogPosition(stat.st_ino, offset + len(data), before), place.offset > 0 and not same)


def whole_lines(data: bytes) -> int:
    """Number of bytes up to the end of the last whole line."""
    return data.rfind(b"\n") + 1
