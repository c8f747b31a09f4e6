"""What a run may be called. Its name is that of its folder and stands in links, and is never a path."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from engine.characters import BYTES, cut_characters, keep_words
from engine.training.run.folder import is_run, list_names

LONGEST = 60  # characters
NUMBER = re.compile(r"[\d.]+$")


def check_name(name: str) -> str:
    """`name` as it is written everywhere. Raises ValueError for anything else than a name."""
    plain = unicodedata.normalize("NFC", name.strip())
    if keep_words(plain, " .-", "") == plain != cut_characters(plain, LONGEST):
        raise ValueError(
            f"a run's name must have at most {LONGEST} characters and {BYTES * LONGEST} bytes, got {name[:100]!r}; "
            "shorten it."
        )
    starts = plain[:1] == "_" or plain[:1].isalnum()
    if not starts or plain[-1] in " ." or keep_words(plain, " .-", "") != plain:
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
        free = f"{cut_name(name, LONGEST - len(str(number)) - 1)} {number}"
    return free


def cut_name(name: str, length: int) -> str:
    """`name` in at most `length` characters, cut between two words where it has several, and in no number."""
    short = cut_characters(name, length)
    if short == name:
        return name
    words, space, _ = f"{short}{name[len(short)]}".rpartition(" ")
    kept = words if space else NUMBER.sub("", short) or short
    return kept.rstrip(" .-")


def existing_run(name: str, folder: Path) -> Path:
    """The run directory of that name. Raises ValueError where there is none."""
    path = folder / check_name(name)
    if not is_run(list_names(path)):
        raise ValueError(f"there is no run called {name[:100]!r} here; it may have been renamed or deleted.")
    return path
