"""The families Loupe reads and writes: every file here that defines FAMILY is one, or FAMILIES, its architectures.

What several could express is written as the one it was read from, else as the first of them.
"""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from pkgutil import iter_modules

from engine.checkpoints.family import Family

LAST = ("mt5",)  # T5 says the same, and is better known


def import_families(module: str) -> tuple[Family, ...]:
    """Families that one file defines."""
    found = import_module(f"{__name__}.{module}")
    families: tuple[Family, ...] = getattr(found, "FAMILIES", None) or (found.FAMILY,)
    return families


def collect_families() -> dict[str, tuple[Family, ...]]:
    modules = sorted((module.name for module in iter_modules(__path__)), key=lambda name: name in LAST)
    families = list(chain.from_iterable(map(import_families, modules)))
    return {name: tuple(f for f in families if f.name == name) for name in dict.fromkeys(f.name for f in families)}


FAMILIES: dict[str, tuple[Family, ...]] = collect_families()
(NATIVE,) = FAMILIES["loupe"]
