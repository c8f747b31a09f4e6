"""What each visitor opened, in the same file as the paths: it holds over a restart of the server."""

from __future__ import annotations

import hashlib
from pathlib import Path

from engine.runtime.openings import put, read

RECENT = 12  # models of one person


def name_person(token: str) -> str:
    """Name of whoever has a cookie, which does not give the cookie away."""
    return hashlib.sha256(token.encode()).hexdigest()[:32]


def visit(folder: str | Path, visitor: str, name: str) -> None:
    """Puts a model first in the list of what that person opened."""
    put(folder, "people", visitor, [name, *(one for one in recent(folder, visitor) if one != name)][:RECENT])


def recent(folder: str | Path, visitor: str) -> list[str]:
    """Lists the models that a person opened, the last one first."""
    found = read(folder, "people").get(visitor)
    return [str(name) for name in found] if isinstance(found, list) else []
