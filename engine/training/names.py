"""What a run may be called. Its name is that of its folder and stands in links, and is never a path."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

LONGEST = 60  # characters
NAME = re.compile(r"\w(?:[\w .-]*[\w-])?")


def check_name(name: str) -> str:
    """`name` as it is written everywhere. Raises ValueError for anything else than a name."""
    plain = unicodedata.normalize("NFC", name.strip())
    if not NAME.fullmatch(plain) or len(plain) > LONGEST or len(plain.encode()) > 4 * LONGEST:
        raise ValueError(
            f"a run's name must be 1 to {LONGEST} letters, digits, spaces, and - _ . between them, got {name[:100]!r}; "
            "choose another."
        )
    return plain


def unused_name(name: str, folder: Path) -> str:
    """`name`, or with a number behind it that no run in `folder` has."""
    taken = {path.name.casefold() for path in folder.iterdir()} if folder.is_dir() else set()
    number, free = 1, name
    while free.casefold() in taken:
        number += 1
        free = f"{name[: LONGEST - len(str(number)) - 1].rstrip(' .')} {number}"
    return free


def existing_run(name: str, folder: Path) -> Path:
    """The run directory of that name. Raises ValueError where there is none."""
    path = folder / check_name(name)
    if not path.is_dir():
        raise ValueError(f"there is no run called {name[:100]!r} here; it may have been renamed or deleted.")
    return path
