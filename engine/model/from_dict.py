"""Dataclasses from plain data (JSON, TOML), every value checked against its annotation, and as calls in Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def build(cls: Any, data: Any, path: str = "") -> Any:
    """A dataclass from plain data, checked against its annotations; `path`, where it stands, is for errors."""
    if not isinstance(data, dict):
        raise ValueError(f"{path or cls.__name__} must be a table, got {data!r:.80}.")
    known = {f.name: f for f in fields(cls)}
    hints = annotations_of(cls)
    prefix = f"{path}." if path else ""
    for name in data:
        if name not in known:
            raise ValueError(f"{prefix}{name} is not a known key; expected one of {', '.join(known)}.")
    values = {name: check_value(hints[name], value, f"{prefix}{name}") for name, value in data.items()}
    try:
        return cls(**values)
    except TypeError:
        missing = [n for n, f in known.items() if n not in values and is_required(f)]
        raise ValueError(f"{path or cls.__name__} lacks {', '.join(missing)}.") from None


@cache
def annotations_of(cls: Any) -> dict[str, Any]:
    """Caches `get_type_hints`, which compiles every postponed annotation anew on each call."""
    return get_type_hints(cls)


def build_from_valid(cls: Any, data: Any, required: Mapping[str, Any] | None = None) -> tuple[Any, str]:
    """A dataclass from what of `data` fits it, over `required`, and in words what does not; "" where all does."""
    values, faults = dict(required or {}), []
    if not isinstance(data, dict):
        return cls(**values), f"it must hold a table, got {data!r:.80}"
    for name, value in data.items():
        try:
            build(cls, {**values, name: value})
            values[name] = value
        except (ValueError, OverflowError) as error:  # a whole number may be too large for a float
            faults.append(str(error).rstrip("."))
    return build(cls, values), "; ".join(faults[:FAULTS])


FAULTS = 3  # of a file, that are named


def _option(options: list[Any], value: Any) -> Any:
    """The first of the options that the value is of; a list is also what is read as a tuple."""
    kinds = [(option, get_origin(option) or option) for option in options]
    lists = (tuple, list) if isinstance(value, list) else ()
    return next((option for option, kind in kinds if isinstance(value, kind) or kind in lists), options[0])


def part_of(hint: Any) -> Any:
    """The dataclass that a field holds, if it does."""
    return next((kind for kind in (hint, *get_args(hint)) if hasattr(kind, "__dataclass_fields__")), None)


def is_required(f: Any) -> bool:
    return f.default is MISSING and f.default_factory is MISSING


NOUNS = {int: "a whole number", float: "a number", str: "a text", bool: "true or false", list: "a list"}
NOUNS |= {Mapping: "a table", tuple: "a list"}


def check_value(hint: Any, value: Any, path: str) -> Any:
    if get_origin(hint) in (UnionType, Union):
        if value is None and type(None) in get_args(hint):
            return None
        options = [option for option in get_args(hint) if option is not type(None)]
        hint = options[0] if len(options) == 1 else _option(options, value)
    if hint is Any:
        return value
    if hasattr(hint, "__dataclass_fields__"):
        return build(hint, value, path)
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise ValueError(f"{path} must be one of {', '.join(map(str, get_args(hint)))}, got {value!r:.80}.")
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    kind = get_origin(hint) or hint
    if kind is tuple and isinstance(value, list):
        value = tuple(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ValueError(f"{path} must be {NOUNS.get(kind, kind.__name__)}, got {value!r:.80}.")
    if kind in (list, tuple):
        of = (get_args(hint) or (Any,))[0]
        return kind(check_value(of, item, f"{path}[{i}]") for i, item in enumerate(value))
    if kind is Mapping:
        return {name: check_value(get_args(hint)[1], item, f"{path}.{name}") for name, item in value.items()}
    return value


def write_call(value: Any) -> str:
    """An object of a dataclass as the call that makes it, without what stands at its default; of another, its repr."""
    if isinstance(value, list) and any(map(is_dataclass, value)):
        return f"[{', '.join(map(write_call, value))}]"
    if not is_dataclass(value):
        return repr(value)
    parts = []
    for f in fields(value):
        mine = getattr(value, f.name)
        usual = f.default if f.default_factory is MISSING else f.default_factory()
        if mine != usual:
            parts.append(f"{f.name}={write_call(mine)}")
    return f"{type(value).__name__}({', '.join(parts)})"
