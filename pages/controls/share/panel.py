"""Share & export of charts or a table: the same rows, but for the picture, which is in the chart's own toolbar."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import streamlit as st

from pages.controls.prediction import PREDICT
from pages.controls.share.export import BELOW, EXPORT, Export
from pages.controls.share.links import INSTRUCTION
from pages.controls.state.session import widget_value
from views.core.component import PAGE, view
from views.core.questions import Page
from views.core.shown_tables import TABLES, Data, ShownTables

TEACH = "pages/learn/teach.py"

panel = view("share/panel", events=("session",))


def share_panel(
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
    """Draws Share & export below a chart; the courier of the page answers what is asked there (`answer_on`).

    `tables` are by the title to choose from; a text in place of one says why there is no file of it. `html` is the text
    of the file (`views.charts.standalone.chart_file`); `options` are an Export's. What the callables need they
    must hold: they run outside of the page's script.
    """
    tables = tables or {}
    shown = ShownTables(key, "", tables, python or str)
    offered = {"file": html, "python": python, "data": tables}
    queries = dict(zip([""] if len(tables) == 1 else tables, shown.queries.values(), strict=True))
    export = Export(
        title, "share/panel", shown, "", link, hideable, queries, data="",
        rows=["link", "class", "session", *(row for row, made in offered.items() if made)], key=key, html=html,
        page=Page((TABLES, shown)), **options,
    )  # fmt: skip
    BELOW.get()[key] = Page((EXPORT, export))

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
