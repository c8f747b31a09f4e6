"""What a link to a checkpoint opens: its query, what earlier links had behind the #, and what of it is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.checkpoints import Checkpoint
from pages.controls.checkpoint.embedding import FRAMES, SPACES, table_title
from pages.controls.checkpoint.weights import ALL
from pages.controls.share.fragment import Adopt
from pages.controls.share.links import lost
from pages.controls.state.parameter import Rule, one_of, whole_number
from views.checkpoint.embedding import KINDS, METHODS, table_matrices
from views.checkpoint.weights import matrix_rows
from views.core.markdown import escape_markdown

ASKED, OPENED = "asked by the link", "opened by the link"  # in the session state


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


def arrive() -> None:
    """Remembers what the address says as the page is opened: controls drop from it what they cannot use."""
    here = st.session_state.get("page", "")
    if st.session_state.get(OPENED) != here:
        st.session_state[OPENED] = here
        st.session_state[ASKED] = st.query_params.to_dict()
    elif ASKED in st.session_state:  # what stood behind the #
        for name, text in st.session_state[ASKED].items():
            st.session_state.update({name: state_of(name, text)} if name != "token" else {})
        if "token" in st.session_state[ASKED]:
            st.session_state.pop("token", None)
            st.query_params["token"] = st.session_state[ASKED]["token"]


def state_of(name: str, text: str) -> Any:
    """Value of the control with that key."""
    if name in ("circuit", "log_counts"):
        return text == "true"
    return [kind for kind in text.split(",") if kind in KINDS] if name == "without" else text


def say_lost(name: str, checkpoint: Checkpoint) -> None:
    """Says once what of the link this checkpoint does not have."""
    asked = st.session_state.pop(ASKED, {})
    parts = lost({key: text for key, text in asked.items() if key in FORMER}, [], rules(checkpoint, asked))
    if parts:
        st.info(f"Not all of this link could be restored: {'; '.join(map(escape_markdown, parts))}.")


def rules(checkpoint: Checkpoint, asked: Mapping[str, str]) -> dict[str, Rule]:
    rows = {row.name: row for row in matrix_rows(checkpoint.model)}
    tables = {each.name: each.shape[0] for each in table_matrices(checkpoint.model)}
    row, table = rows.get(asked.get("matrix", "")), asked.get("table", next(iter(tables), ""))
    found = {"matrix": one_of(rows), "how": one_of([*METHODS, *METHODS.values()]), "frame": one_of(FRAMES)}
    found |= {"table": one_of([*tables, *(table_title(name, list(tables)) for name in tables)])}
    found |= {"axes": one_of(SPACES), "token": whole_number(0, max(0, tables.get(table, 1) - 1))}
    return found | ({"head": one_of([ALL, *range(1, row.heads + 1)])} if row else {})
