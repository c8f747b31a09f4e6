"""What was opened, in a file beside the training runs: a link to a path holds over a restart of the server.

The same file has what each visitor opened, as server/library/visitors.py reads and writes it.
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from engine.json_text import parse_json

FILE = ".opened.json"
MOST = 100  # paths, and people; the oldest go
Part = Literal["paths", "people"]
_lock = Lock()


def keep_path(folder: str | Path, name: str, given: dict[str, Any]) -> None:
    """Keeps with which arguments the path `source` was opened by that name."""
    put(folder, "paths", name, given)


def find_path(folder: str | Path, name: str) -> dict[str, Any] | None:
    """Finds the arguments, whether their path is still there or not; None where nothing was opened by that name."""
    found = read(folder, "paths").get(name)
    return found if isinstance(found, dict) and isinstance(found.get("source"), str) else None


def find_name(folder: str | Path, given: dict[str, Any]) -> str | None:
    """Finds the name by which the same was opened before."""
    return next((name for name, found in read(folder, "paths").items() if found == given), None)


def put(folder: str | Path, part: Part, key: str, value: object) -> None:
    """Keeps it as the last one of its part, of which the oldest go."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with _lock, (Path(folder) / f"{FILE}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # the server may be several processes
        content = {each: read(folder, each) for each in ("paths", "people")}
        if content[part].get(key) == value:
            return
        content[part].pop(key, None)
        content[part] = dict([*content[part].items(), (key, value)][-MOST:])
        partial = Path(folder) / f"{FILE}.{os.getpid()}"
        partial.write_text(json.dumps(content), encoding="utf-8")
        partial.replace(Path(folder) / FILE)


def read(folder: str | Path, part: Part) -> dict[str, Any]:
    """Reads a part of the file; one that is missing or damaged holds nothing."""
    try:
        found = parse_json((Path(folder) / FILE).read_text(encoding="utf-8"))[part]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
