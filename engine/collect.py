"""What a package of kinds holds: each of its files defines one, which is found by its place."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

T = TypeVar("T")


def collect(package: str, name: str, kind: type[T]) -> list[T]:
    """The object called `name` of every module of a package, ordered by their `place`, or else by PLACE of its module,
    then by the modules' names.

    Raises TypeError for a module that has none of that kind.
    """
    found = list[tuple[int, T]]()
    for module in sorted(one.name for one in iter_modules(import_module(package).__path__)):
        there = import_module(f"{package}.{module}")
        made = getattr(there, name, None)
        if not isinstance(made, kind):
            raise TypeError(f"expected {name} of {package}.{module} to be a {kind.__name__}, got {made!r}; declare it.")
        found.append((getattr(made, "place", getattr(there, "PLACE", 0)), made))
    return [made for _, made in sorted(found, key=lambda one: one[0])]
