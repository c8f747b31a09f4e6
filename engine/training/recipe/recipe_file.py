"""Recipes as TOML files: read with every complaint placed on its line, and written back."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import tomli_w

from engine.data.published import PREFIX
from engine.json_text import parse_json
from engine.model.config import ModelConfig
from engine.model.from_dict import build
from engine.training.base.base import resolve_base
from engine.training.base.new_head import fill_model
from engine.training.objectives import objectives
from engine.training.recipe.data_recipe import read_data
from engine.training.recipe.preference import Preference
from engine.training.recipe.recipe import (
    Batch,
    Log,
    Lora,
    Machine,
    Objective,
    Optimiser,
    Recipe,
    Schedule,
    Train,
)

SECTIONS: dict[str, Any] = {
    "model": ModelConfig,
    "objective": Objective,
    "optimiser": Optimiser,
    "schedule": Schedule,
    "batch": Batch,
    "log": Log,
    "machine": Machine,
    "train": Train,
    "lora": Lora,
    "preference": Preference,
}
UNKNOWN_MARKS = {"mask": 0, "start": 0}  # until there is a tokenizer
REQUIRED = ("model", "data", "schedule", "batch")
WHOLE = {"d_model", "layers", "attention"}  # of a [model] that is not completed from a base
TOKEN = re.compile(
    r"""(?P<blank>[ \t\r]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<string>\"{3}(?:\\.|[^\\])*?\"{3} | '{3}.*?'{3} | "(?:\\.|[^"\\\n])*" | '[^'\n]*')
      | (?P<mark>[\[\]{}=,.])
      | (?P<bare>[^\s\[\]{}=,.\#"']+)""",
    re.DOTALL | re.VERBOSE,
)

MOST = 2**53 - 1
T = TypeVar("T")


class RecipeError(ValueError):
    """Error of one sentence that begins with the file and, where there is one, the `line`."""

    def __init__(self, name: str, line: int | None, message: str) -> None:
        place = f"{name}, line {line}" if line else name
        super().__init__(f"{place}: {message}")
        self.line = line


class SectionError(ValueError):
    """Error in the part `section` of a recipe."""

    def __init__(self, section: str, message: str) -> None:
        super().__init__(message)
        self.section = section


def read_recipe(path: Path | str) -> Recipe:
    """Raises RecipeError for anything that is not as a recipe should be, FileNotFoundError where there is none."""
    path = Path(path)
    return place_files(parse_recipe(read_toml(path), str(path), path.parent), path.parent)


def read_toml(path: Path) -> str:
    """The text of a recipe's file. Raises as `read_recipe`."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise FileNotFoundError(f"a recipe must be a file, got {path}; there is none, correct the path.") from None
    except UnicodeDecodeError as error:
        where = f"{error.reason} at byte {error.start}"
        raise RecipeError(str(path), None, f"a recipe must be UTF-8 text, got {where}; save it as UTF-8.") from None


def place_files(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with the files of its data by their paths from the root, relative ones taken from `folder`."""
    data = recipe.data
    named = {name: getattr(data.table, name, "") for name in ("path", "held_out_path")}
    files = {
        name: str((folder / file).resolve()) for name, file in named.items() if file and not file.startswith(PREFIX)
    }
    if not files:
        return recipe
    return replace(recipe, data=replace(data, table=replace(data.table, **files)))


def parse_recipe(text: str, name: str = "recipe", folder: Path | None = None) -> Recipe:
    """`name` is how errors call the file, and `folder` from where a `base` that is a path is taken. Without a folder,
    as for a text from a browser, a base must be known here by its name: nothing is fetched, and no path is opened.

    Of a recipe with a base [model] may be left out, or have only what is to be otherwise, such as dropout or head.
    """
    return parse_toml(text, name, lambda data: build_recipe(data, folder))


def parse_toml(text: str, name: str, make: Callable[[dict[str, Any]], T]) -> T:
    """Gives the tables of a text to `make`. Raises RecipeError, on its line, for a ValueError of `make`."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RecipeError(name, None, f"this is not TOML: {error}.") from None
    try:
        return make(data)
    except ValueError as error:
        section = error.section if isinstance(error, SectionError) else ""
        raise RecipeError(name, _line(str(error), section, key_lines(text)), str(error)) from None


def build_recipe(data: Mapping[str, Any], folder: Path | None) -> Recipe:
    """A recipe from the tables of its file; `folder` as for `parse_recipe`. Raises SectionError."""
    data = {"model": {}, **data} if data.get("base") else dict(data)
    missing = [section for section in REQUIRED if section not in data]
    if missing:
        raise SectionError("", f"a recipe needs [{'], ['.join(missing)}]; add what is missing.")
    values: dict[str, Any] = {}
    section = "base"
    try:
        if isinstance(data.get("base"), str):
            data["base"] = resolve_base(data["base"], folder)
        for section, value in data.items():
            values[section] = _section(section, value, data)
        section = ""
        return Recipe(**values)
    except ValueError as error:
        raise SectionError(section, str(error)) from None


def _section(key: str, value: Any, data: dict[str, Any]) -> Any:
    known = [f.name for f in fields(Recipe)]
    if key not in known:
        raise ValueError(f"{key} is not a known key; expected one of {', '.join(known)}.")
    check_numbers(key, value)
    if key == "data":
        return read_data(value)
    if key in SECTIONS:
        return build(SECTIONS[key], _model(value, data) if key == "model" else value, key)
    expected = int if key in ("seed", "split") else str
    if type(value) is not expected:
        raise ValueError(f"{key} must be {'a whole number' if expected is int else 'text'}, got {value!r:.80}.")
    return value


def check_numbers(path: str, value: Any) -> None:
    """Raises ValueError for a number that no control can show: infinite, none at all, or beyond the whole numbers that
    a browser counts by."""
    if isinstance(value, dict):
        for name, item in value.items():
            check_numbers(f"{path}.{name}", item)
    elif isinstance(value, list):
        for item in value:
            check_numbers(path, item)
    elif isinstance(value, int) and abs(value) > MOST:
        raise ValueError(f"{path} must be a number from -{MOST:,} to {MOST:,}, got {value!r:.80}; correct it.")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{path} must be a finite number, got {value}; correct it.")


def _model(value: Any, data: dict[str, Any]) -> Any:
    """The vocabulary and its marks are the tokenizer's, and the context is the batch's unless the recipe says more."""
    if not isinstance(value, dict):
        return value
    batch, objective = data.get("batch"), data.get("objective")
    kind = objective.get("kind", Objective.kind) if isinstance(objective, dict) else Objective.kind
    base = data.get("base")
    if isinstance(base, str) and base and not value.keys() >= WHOLE:
        table = data["data"] if isinstance(data["data"], dict) else {}
        language = isinstance(objective, dict) and bool(objective.get("language_weight"))
        return fill_model(base, str(kind), next((one for one in table if one != "tokenizer"), ""), value, language)
    if "vocab_size" in value and not base:
        raise ValueError("model.vocab_size is the tokenizer's; remove it, or set data.tokenizer.vocab_size.")
    if "infill" in value:
        raise ValueError("model.infill has marks that are the tokenizer's; remove it, the objective brings them.")
    context = batch.get("context") if isinstance(batch, dict) else None
    asked = objectives().get(str(kind))
    infill = {"infill": UNKNOWN_MARKS} if asked is not None and asked.fills_gaps else {}
    return {"vocab_size": 1, **infill, **({"context": context} if isinstance(context, int) else {}), **value}


def _line(message: str, section: str, places: dict[str, int]) -> int | None:
    """Errors begin with the key they are about, whole or from its section on; the nearest table stands in for it."""
    word = message.split()[0].rstrip(".:,")
    for key in (word, f"{section}.{word}"):
        while key:
            if key in places and key != section:
                return places[key]
            key = key.rpartition(".")[0]
    return places.get(section)


def write_recipe(recipe: Recipe) -> str:
    """TOML that `parse_recipe` reads back to an equal recipe, without tables that say nothing."""
    tables = {"train": Train(), "lora": Lora(), "preference": Preference()}
    usual = {name for name, table in tables.items() if getattr(recipe, name) == table}
    return as_toml({name: value for name, value in recipe.tables.items() if name not in usual})


def as_toml(data: Mapping[str, Any]) -> str:
    """TOML of a recipe's tables, as `Recipe.tables` gives them or as a person has changed them."""
    return tomli_w.dumps(as_tables(data))


def as_tables(data: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a recipe's file, which `build_recipe` reads."""
    decided = ("infill",) if data.get("base") else ("vocab_size", "infill")  # by the tokenizer
    model = {key: value for key, value in data["model"].items() if key not in decided}
    return without_none({**data, "model": model})


def without_none(data: Mapping[str, Any]) -> dict[str, Any]:
    """`data` without the keys whose value is None, in nested tables too: TOML has no such value."""
    return {
        key: without_none(value) if isinstance(value, Mapping) else value
        for key, value in data.items()
        if value is not None
    }


def key_lines(text: str) -> dict[str, int]:
    """Line number, from 1, of each dotted key, tables included, keys in arrays not. tomllib forgets the places.

    `text` is TOML that tomllib accepts.
    """
    return _Scanner(text).found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.found: dict[str, int] = {}
        self.tokens: list[tuple[str, int]] = []
        line = 1
        for match in TOKEN.finditer(text):
            if match.lastgroup != "blank":
                self.tokens.append((match[0], line))
            line += match[0].count("\n")
        self.at = 0
        self._document()

    def _document(self) -> None:
        table: tuple[str, ...] = ()
        while self.at < len(self.tokens):
            if self._peek() == "\n":
                self.at += 1
            elif self._peek() == "[":
                while self._peek() == "[":
                    self.at += 1
                table = self._key((), "]")
            else:
                self._value(self._key(table, "="))

    def _key(self, table: tuple[str, ...], end: str) -> tuple[str, ...]:
        """Read a dotted key up to `end`, note its line, and return the whole path."""
        line, parts = self.tokens[self.at][1], []
        while self._peek() != end:
            token = self._next()
            if token != ".":
                parts.append(_unquote(token))
        while self._peek() == end:
            self.at += 1
        path = (*table, *parts)
        for length in range(len(table) + 1, len(path) + 1):
            self.found.setdefault(".".join(path[:length]), line)
        return path

    def _value(self, path: tuple[str, ...]) -> None:
        if self._peek() == "{":
            self.at += 1
            while self._peek() != "}":
                if self._peek() in (",", "\n"):
                    self.at += 1
                else:
                    self._value(self._key(path, "="))
            self.at += 1
            return
        depth = 0
        while self.at < len(self.tokens) and (depth or self._peek() not in (",", "}", "\n")):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(self._next(), 0)

    def _peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][0]


def _unquote(token: str) -> str:
    if token.startswith('"'):
        return str(parse_json(token))
    return token.strip("'")
