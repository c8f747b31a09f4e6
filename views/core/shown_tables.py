"""Tables that a page shows beside a component: to download, with the lines of Python that compute them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated

from views.core.matrix_files import Matrix
from views.core.questions import Axis, BareContext, Query, Registry
from views.core.table_files import Table

Data = Callable[[], Table | Matrix]
TABLES = Registry()


@dataclass(frozen=True)
class ShownTables(BareContext):
    """Tables by their titles, made when they are asked for, or a sentence why one has no file; `digest` names what they
    are of."""

    digest: str
    model_name: str
    tables: Mapping[str, Data | str]
    python: Callable[[], str]

    @property
    def queries(self) -> dict[str, Query]:
        return {title: {"ask": "table", "title": title} for title in self.tables}

    def choices(self, axis: str, query: Query) -> Collection[str]:
        return list(self.tables)


def make_table(shown: ShownTables, title: str) -> Table | Matrix:
    data = shown.tables[title]
    if isinstance(data, str):
        raise ValueError(data)
    return data()


def make_script(shown: ShownTables, title: str, row: int, col: int) -> str:
    return shown.python()


@TABLES.question("table", make_table=make_table, make_script=make_script)
def ask_table(shown: ShownTables, title: Annotated[str, Axis("title")]) -> None:
    """Declares the tables: the page has drawn them."""
