"""The menu: every script below pages/ says in one line of its own where it stands there. Nothing else lists the pages.

MENU = {"title": "Compare", "address": "compare", "place": 4}
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from engine.places import PAGES

GROUPS = {  # folder -> menu
    "learn": "Learn",
    "explore": "Explore",
    "analyse": "Analyse",
    "train": "Train",
    "inspect": "Models",
}


@dataclass(frozen=True)
class Entry:
    """A page: `place` counts within its menu, and `opens` says that its address takes a model."""

    path: str
    group: str
    title: str
    address: str
    place: int
    opens: bool = False


@cache
def entries() -> tuple[Entry, ...]:
    """All pages in the order of the menu. Raises ValueError for a script that does not say where it stands."""
    found = [read_entry(path, group) for folder, group in GROUPS.items() for path in (PAGES / folder).glob("*.py")]
    order = list(GROUPS.values())
    return tuple(sorted(found, key=lambda entry: (order.index(entry.group), entry.place)))


def read_entry(path: Path, group: str) -> Entry:
    """Reads MENU without running the page."""
    said = path.relative_to(PAGES.parent).as_posix()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MENU":
            return Entry(said, group, **ast.literal_eval(node.value))
    raise ValueError(f"expected MENU in {said}, got none; add MENU = {{'title': ..., 'address': ..., 'place': ...}}")
