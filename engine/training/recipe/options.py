"""All options that a recipe's file may have, by dotted key: docs/recipes.md and the command line list them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import Field, fields
from typing import Any, NamedTuple

from engine.data.kinds import data_kinds
from engine.data.tokenizer_recipe import TokenizerRecipe
from engine.model.from_dict import annotations_of, is_required, part_of
from engine.training.recipe.data_recipe import Data
from engine.training.recipe.recipe import Recipe


class Row(NamedTuple):
    """An option; `default` is as TOML has it, "required" where there is none, and "" where it may be left out."""

    key: str
    default: str
    help: str

    @property
    def markdown(self) -> str:
        """Its line in the table of docs/recipes.md."""
        default = self.default if self.default in ("", "required") else f"`{self.default}`"
        return f"| `{self.key}` | {default} | {self.help} |".replace("||", r"\|\|")


def list_options(kind: Any = Recipe, above: str = "", told: dict[Any, str] | None = None) -> Iterator[Row]:
    """Yields those of a table and of its parts, but for what the data and the task decide; `told` has the keys of the
    kinds of parts that came before, whose options are not repeated."""
    told = {} if told is None else told
    for option in fields(kind):
        if option.metadata.get("decided"):
            continue
        key, meaning = f"{above}{option.name}", option.metadata.get("help", "")
        part = part_of(annotations_of(kind)[option.name])
        if part is Data:
            yield from list_data_options(key, told)
            continue
        if part in told:
            yield Row(key, format_default(option), f"{meaning} It has the options of {told[part]}.")
            continue
        if part is None or meaning:
            yield Row(key, format_default(option), meaning)
        if part is not None:
            told[part] = key
            yield from list_options(part, f"{key}.", told)


def list_data_options(above: str, told: dict[Any, str]) -> Iterator[Row]:
    for name, table in data_kinds().items():
        yield from list_options(table, f"{above}.{name}.", told)
    yield from list_options(TokenizerRecipe, f"{above}.tokenizer.", told)


def format_default(option: Field[Any]) -> str:
    if is_required(option):
        return "required"
    return "" if option.default is None else json.dumps(option.default)


def format_options() -> str:
    """Formats them for the command line, one in a line."""
    return "\n".join(f"{row.key:<36}  {row.default:<12}  {row.help}" for row in list_options())
