"""Share & export of charts or a table: the same rows, but for the picture, which is in the chart's own toolbar."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import streamlit as st

from pages.controls.prediction import PREDICT
from pages.controls.share.export import BELOW, EXPORT, Export
from pages.controls.share.links import INSTRUCTION
from pages.controls.state.session import widget_value
from views.core.component import PAGE, view
from views.core.matrix_files import Matrix
from views.core.questions import Axis, BareContext, Page, Query, Registry
from views.core.table_files import Table

TEACH = "pages/learn/teach.py"
Data = Callable[[], Table | Matrix]

panel = view("share/panel", events=("session",))
CHARTS = Registry()


@dataclass(frozen=True)
class Charts(BareContext):
    """What charts have to export, made when it is asked for."""

    digest: str
    tables: Mapping[str, Data | str]
    python: Callable[[], str] | None
    model_name: str = ""

    def choices(self, axis: str, query: Query) -> Collection[str]:
        return self.tables


def make_table(charts: Charts, table: str) -> Table | Matrix:
    data = charts.tables[table]
    if isinstance(data, str):
        raise ValueError(data)
    return data()


def make_script(charts: Charts, table: str, row: int, col: int) -> str:
    assert charts.python is not None
    return charts.python()


@CHARTS.question("charts", make_table=make_table, make_script=make_script)
def ask_charts(charts: Charts, table: Annotated[str, Axis("table")] = "") -> None:
    """Declares the tables of charts and their lines; a browser has their numbers."""


def share_panel(
    page: Page,
    title: str,
    link: Mapping[str, str] | Callable[[], Mapping[str, str]],
    hideable: Sequence[str] = (),
    python: Callable[[], str] | None = None,
    tables: Mapping[str, Data | str] | None = None,
    html: Callable[[], str] | None = None,
    *,
    key: str,
    **options: Any,
) -> None:
    """Draws Share & export below a chart; `page` answers what is asked there.

    `tables` are by the title to choose from; a text in place of one says why there is no file of it. `html` is the text
    of the file (`views.charts.standalone.chart_file`); `options` are an Export's. What the callables need they
    must hold: they run outside of the page's script.
    """
    tables = tables or {}
    charts = Charts(key, tables, python)
    offered = {"file": html, "python": python, "data": tables}
    queries = {name if len(tables) > 1 else "": {"ask": "charts", "table": name} for name in tables}
    export = Export(
        title, "share/panel", charts, "", link, hideable, queries or {"": {"ask": "charts"}}, data="", page=page,
        rows=["link", "class", "session", *(row for row, made in offered.items() if made)], key=key, html=html,
        **options,
    )  # fmt: skip
    BELOW.get()[key] = [(EXPORT, export), (CHARTS, charts)]
    for part in BELOW.get()[key]:
        page.add(*part)

    @st.fragment
    def draw() -> None:
        if address := panel({"take": export.header}, key=key).session:
            open_session(address)

    draw()


def open_session(address: str) -> None:
    """Leads to a class session with what a link for a class shows."""
    query = dict(parse_qsl(urlsplit(str(address)).query))
    sentence = query.pop(INSTRUCTION, "")
    query.pop(PREDICT, None)
    step = {"page": widget_value(PAGE, ""), "query": query, "sentence": sentence}
    st.switch_page(TEACH, query_params={"step": json.dumps(step)})
