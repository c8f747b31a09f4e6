"""The families Loupe reads and writes: every file here that defines FAMILY is one, or FAMILIES, its architectures.

What several could express is written as the one it was read from, else as the first of them.
"""

from __future__ import annotations

from importlib import import_module
from itertools import chain
from pkgutil import iter_modules

from engine.checkpoints.family import Family

LAST = ("mt5",)  # T5 says the same, and is better known


def defined(module: str) -> tuple[Family, ...]:
    found = import_module(f"{__name__}.{module}")
    families: tuple[Family, ...] = getattr(found, "FAMILIES", None) or (found.FAMILY,)
    return families


def by_name() -> dict[str, tuple[Family, ...]]:
    modules = sorted((module.name for module in iter_modules(__path__)), key=lambda name: name in LAST)
    families = list(chain.from_iterable(map(defined, modules)))
    return {name: tuple(f for f in families if f.name == name) for name in dict.fromkeys(f.name for f in families)}


FAMILIES: dict[str, tuple[Family, ...]] = by_name()
(NATIVE,) = FAMILIES["loupe"]
