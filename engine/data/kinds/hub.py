"""A data set by its name on the hub, where the package `datasets` and the network are there."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from importlib.util import find_spec
from itertools import islice
from typing import Any, ClassVar

from engine.budget import budget
from engine.data.bounds import at_least
from engine.data.documents import Documents
from engine.data.own import Columns
from engine.data.own_tasks import own_documents
from engine.data.table import MAX_ROWS, Cell, Table, check_columns, split_lists, to_cell
from engine.model.option import Option

NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)
INSTALL = "install it with: pip install datasets"


@dataclass(frozen=True, kw_only=True)
class Hub(Columns):
    """The first `rows` of a `split` of the data set `name`, such as "stanfordnlp/imdb"; `subset` is one of its
    configurations where it has several.
    """

    name: str = field(metadata=Option(help="The data set’s name on the hub."))
    subset: str = field(default="", metadata=Option(help="One of its configurations, where it has several."))
    split: str = field(default="train", metadata=Option(help="Which of its parts is read."))
    rows: int = field(default=10_000, metadata=Option(help="Rows that are read, from the first."))

    kind: ClassVar[str] = "hub"
    place: ClassVar[int] = 19

    def __post_init__(self) -> None:
        super().__post_init__()
        if not NAME.fullmatch(self.name) or ".." in self.name:
            name = self.name[:80]
            raise ValueError(f"data.hub.name must be a name on the hub, such as stanfordnlp/imdb, got {name!r}.")
        at_least("data.hub.rows", self.rows, 2)
        if self.rows > MAX_ROWS:
            raise ValueError(f"data.hub.rows must be at most {MAX_ROWS:,}, got {self.rows:,}.")

    def table(self) -> Table:
        return read_hub(self.name, self.subset, self.split, self.rows)

    def make_documents(self, seed: int) -> Documents:
        return own_documents(self, seed)


def has_datasets() -> bool:
    return find_spec("datasets") is not None


@lru_cache(maxsize=2)
def read_hub(name: str, subset: str = "", split: str = "train", rows: int = 10_000) -> Table:
    """Read row by row, so that no more is fetched than is asked for, and without running code of the data set's.
    Classes are given by their names. Raises ValueError, in a sentence, where it cannot be had.
    """
    try:
        datasets = import_module("datasets")
    except ImportError:
        raise ValueError(f"a data set from the hub needs the package datasets, which is not here; {INSTALL}.") from None
    try:
        stream = datasets.load_dataset(name, subset or None, split=split, streaming=True)
        found = collect_rows(islice(stream, rows))
    except (OSError, ValueError, RuntimeError, LookupError) as error:  # what it and the network raise
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise ValueError(
            f"the data set {name} (split {split}) must be one of the hub's that can be fetched now, got: {said}; "
            "correct its name, subset or split, or fetch it as a file and use [data.rows]."
        ) from None
    if not found:
        raise ValueError(f"the data set {name} (split {split}) has no rows; choose another split.")
    columns = check_columns(tuple(dict.fromkeys(column for row in found for column in row)))
    classes = class_names(getattr(stream, "features", None) or {})
    cells = [tuple(class_cell(row.get(column), classes.get(column)) for column in columns) for row in found]
    return Table(columns, tuple(cells), f"{name}, split {split}")


def collect_rows(rows: Any) -> list[dict[str, Any]]:
    """Raises ValueError where they are more than a file of data may be."""
    found, taken = [], 0
    for row in rows:
        found.append(split_lists(row))
        taken += sum(len(str(value)) for value in row.values())
        if taken > budget.max_data:
            raise ValueError(
                f"its first {len(found):,} rows have more than {budget.max_data / 2**20:,.0f} MiB; ask for fewer rows"
            )
    return found


def class_names(features: Any) -> dict[str, list[str]]:
    """Names of the classes, by column, of columns whose numbers stand for classes, alone or in a list."""
    found = {}
    for column, feature in features.items():
        names = getattr(feature, "names", None) or getattr(getattr(feature, "feature", None), "names", None)
        if names:
            found[column] = list(names)
    return found


def class_cell(value: Any, names: list[str] | None) -> Cell:
    if names is None or value is None:
        return to_cell(value)
    if isinstance(value, list | tuple):
        return tuple(class_name(one, names) for one in value)
    return class_name(value, names)


def class_name(value: Any, names: list[str]) -> str:
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else str(value)


KIND = Hub
