"""The families Loupe reads and writes: every file here that defines FAMILY is one, or FAMILIES, its architectures."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from engine.checkpoints.family import Family


def defined(module: str) -> tuple[Family, ...]:
    found = import_module(f"{__name__}.{module}")
    families: tuple[Family, ...] = getattr(found, "FAMILIES", None) or (found.FAMILY,)
    return families


FAMILIES: dict[str, tuple[Family, ...]] = {of[0].name: of for of in (defined(m.name) for m in iter_modules(__path__))}
(NATIVE,) = FAMILIES["loupe"]
