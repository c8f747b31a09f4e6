"""The last values in metrics.jsonl, without reading all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TAIL = 2**16  # bytes of the end that are read first
MOST = 2**22  # and at most
NAMES = ("loss", "accuracy", "held_out_loss", "held_out_accuracy")


def last_values(path: Path) -> dict[str, Any]:
    """The newest of each of `NAMES`, and the `seconds` of the last line; empty where nothing was logged yet.

    A last line that is still being written is left out. Raises ValueError for one that is damaged.
    """
    try:
        whole = path.stat().st_size
    except FileNotFoundError:
        return {}
    length, found = TAIL, dict[str, Any]()
    while True:
        with path.open("rb") as file:
            file.seek(max(0, whole - length))
            lines = file.read(length).split(b"\n")
        found = _newest(lines[0 if length >= whole else 1 : -1], path)
        if length >= min(whole, MOST) or ("loss" in found and "held_out_loss" in found):
            return found
        length *= 4


def _newest(lines: list[bytes], path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in reversed(lines):
        values = _values(line, path)
        found.setdefault("seconds", values["seconds"])
        found |= {name: values[name] for name in NAMES if name not in found and values.get(name) is not None}
        if len(found) == len(NAMES) + 1:
            break
    return found


def _values(line: bytes, path: Path) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    known = isinstance(values, dict) and all(
        isinstance(values.get(name), int | float | None) for name in ("step", "seconds", *NAMES)
    )
    if not known or values.get("seconds") is None:
        told = line[:60].decode(errors="replace")
        raise ValueError(f"{path.name} must have one logged step a line, and has {told!r}; take that line out.")
    return dict(values)
