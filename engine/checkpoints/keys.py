"""config.json and ModelConfig: one table of keys, read in both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config import ModelConfig

REQUIRED = object()


@dataclass(frozen=True)
class Key:
    """`theirs` in config.json is `ours` in ModelConfig, a dotted path.

    `default` stands in where theirs is absent or null: a value, or a function of the whole config.json.
    `values` translates words of theirs into ours; of several that mean the same, the first is the one
    written. `also` are other names of the key: read where `theirs` is absent, and written as well.
    """

    theirs: str
    ours: str
    default: Any = REQUIRED
    values: Mapping[str, Any] | None = None
    also: tuple[str, ...] = ()

    def read(self, theirs: Mapping[str, Any]) -> Any:
        found = [theirs[name] for name in (self.theirs, *self.also) if theirs.get(name) is not None]
        if not found and self.default is REQUIRED:
            raise ValueError(f"config.json lacks {self.theirs}; without it the model cannot be built.")
        if not found:
            return self.default(theirs) if callable(self.default) else self.default
        if self.values is None:
            return found[0]
        if not isinstance(found[0], str) or found[0] not in self.values:
            raise ValueError(f"config.json's {self.theirs} must be one of {', '.join(self.values)}, got {found[0]!r}.")
        return self.values[found[0]]

    def write(self, value: Any) -> dict[str, Any]:
        if self.values is not None:
            value = next((word for word, ours in self.values.items() if ours == value), value)
        return dict.fromkeys((self.theirs, *self.also), value)


def from_theirs(
    theirs: Mapping[str, Any], keys: Sequence[Key], always: Mapping[str, Any], only: Mapping[str, Any]
) -> ModelConfig:
    for name, value in only.items():
        if theirs.get(name, value) != value:
            raise ValueError(f"config.json's {name} must be {value!r}, got {theirs[name]!r}: Loupe has no such model.")
    ours: dict[str, Any] = {}
    for path, value in always.items():
        _put(ours, path, value)
    for key in keys:
        _put(ours, key.ours, key.read(theirs))
    try:
        return ModelConfig.from_dict(ours)
    except ValueError as error:
        names = ", ".join(key.theirs for key in keys if key.ours in str(error))
        raise ValueError(f"config.json describes no model that Loupe can build: {error} Its key: {names}.") from None


def to_theirs(config: ModelConfig, keys: Sequence[Key], only: Mapping[str, Any]) -> dict[str, Any]:
    ours = config.to_dict()
    theirs = dict(only)
    for key in keys:
        theirs |= key.write(_get(ours, key.ours))
    return theirs


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *branches, leaf = path.split(".")
    for branch in branches:
        tree = tree.setdefault(branch, {})
    tree[leaf] = value


def _get(tree: dict[str, Any] | None, path: str) -> Any:
    for name in path.split("."):
        tree = tree.get(name) if tree is not None else None
    return tree
