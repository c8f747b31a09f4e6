"""The families Loupe reads and writes: every file here that defines FAMILY is one."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from engine.checkpoints.family import Family

FAMILIES: dict[str, Family] = {
    family.name: family for family in (import_module(f"{__name__}.{m.name}").FAMILY for m in iter_modules(__path__))
}
NATIVE = FAMILIES["loupe"]
