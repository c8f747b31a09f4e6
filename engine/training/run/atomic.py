"""Files that are either whole or not there: written beside their place, flushed to the disk, then renamed into it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any

from engine.json_text import parse_json
from engine.training.launch.process import exists

FULL = (errno.ENOSPC, errno.EDQUOT)
CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


@contextmanager
def replace_atomically(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` if the block ends well. A kill in between leaves `path` as it was."""
    partial = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}.partial")
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def explain_closed_folder() -> Iterator[None]:
    """Raises ValueError, with a sentence, where the folder of runs is full, or nothing can be written there."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise ValueError(
                "the folder of runs must have room, got a full disk; delete runs, or make room where Loupe runs."
            ) from error
        if error.errno in CLOSED:
            raise ValueError(
                f"the folder of runs must be one that Loupe may write to, got “{error.strerror}”; correct LOUPE_RUNS "
                "or who may write there, where Loupe is started."
            ) from error
        raise


def sweep(folder: Path) -> None:
    """Remove what processes that were killed had begun to write, here and below."""
    for partial in folder.rglob(".*.partial"):
        pid = partial.name.split(".")[-2].partition("-")[0]
        if pid.isdigit() and not exists(int(pid)):
            partial.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    """Writes a small file even where the disk is full: a file that is there is written over in its place: so little
    fits into the block it has, and a run can still say what became of it."""
    text = json.dumps(value, indent=1) + "\n"
    try:
        with replace_atomically(path) as partial:
            partial.write_text(text, encoding="utf-8")
    except OSError as error:
        if error.errno not in FULL or not path.exists():
            raise
        with path.open("r+", encoding="utf-8") as file:
            file.write(text)
            file.truncate()


def read_json(path: Path) -> Any:
    """None where there is no such file. Raises ValueError for what is no JSON, or nests too deeply to be read."""
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
