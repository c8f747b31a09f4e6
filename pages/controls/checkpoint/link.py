"""What a link to a checkpoint opens: its query, what earlier links had behind the #, and what of it is lost."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from engine.checkpoints import Checkpoint
from pages.controls.checkpoint.embedding import table_title
from pages.controls.checkpoint.weights import head_options
from pages.controls.share.fragment import Adopt
from pages.controls.share.links import lost
from pages.controls.state.page_state import Here
from views.checkpoint.embedding import table_matrices
from views.checkpoint.weights import first_row, matrix_rows
from views.core.markdown import escape_markdown


def adopt_as(name: str) -> Adopt:
    return lambda value: (name, str(value))


FORMER: Mapping[str, Adopt] = {
    "matrix": adopt_as("matrix"),
    "head": lambda value: ("head", str(value + 1) if isinstance(value, int) else str(value)),
    "circuit": lambda value: ("circuit", str(value).lower()),
    "counts": lambda value: ("log_counts", str(value == "log").lower()),
    "table": adopt_as("table"),
    "how": adopt_as("how"),
    "token": adopt_as("token"),
    "frame": adopt_as("frame"),
    "without": lambda value: ("without", ",".join(map(str, value)) if isinstance(value, list) else str(value)),
    "status": adopt_as("status"),
    "named": adopt_as("named"),
}


def adjust_to(here: Here, checkpoint: Checkpoint) -> None:
    """Its matrices, tables and heads are what can be chosen; says what of the link this checkpoint does not have."""
    rows = {row.name: row for row in matrix_rows(checkpoint.model)}
    here.adjust("matrix", options={one: one for one in rows}, default=first_row(list(rows.values())).name)
    if tables := {each.name: each.shape[0] for each in table_matrices(checkpoint.model)}:
        titles = {one: table_title(one, list(tables)) for one in tables}
        here.adjust("table", options=titles, default=next(iter(tables)))
    parts = lost(here.read_said("matrix", "table", "how", "axes", "frame"), [], here.rules)
    row = rows[here.begin("matrix")]
    if heads := row.heads:
        here.adjust("head", options=head_options(row))
    if tables:
        here.adjust("token", high=tables[here.begin("table")] - 1)
    parts += lost(here.read_said(*(["head"] if heads else []), "token"), [], here.rules)
    if parts:
        st.info(f"Not all of this link could be restored: {'; '.join(map(escape_markdown, parts))}.")
