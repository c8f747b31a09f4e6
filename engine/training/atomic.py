"""Files that are either whole or not there: written beside their place, flushed to the disk, then renamed into it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import get_ident
from typing import Any


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path to write to, which becomes `path` if the block ends well. A kill in between leaves `path` as it was."""
    partial = path.with_name(f".{path.name}.{os.getpid()}-{get_ident()}.partial")
    try:
        yield partial
        with open(partial, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, value: Any) -> None:
    with replacing(path) as partial:
        partial.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def read_json(path: Path) -> Any:
    """None where there is no such file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
