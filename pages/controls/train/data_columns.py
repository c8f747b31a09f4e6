"""Which columns of a table are learned from, and how: offered by what there is."""

from __future__ import annotations

import pandas
import streamlit as st

from engine.data.own import FORMS
from engine.data.table import Table
from pages.controls.share.links import as_text
from pages.controls.train.recipe_options import format_value

FORM = {
    ("text",): "texts", ("text", "label"): "texts with a label", ("source", "target"): "pairs of texts",
    ("tokens", "tags"): "words with tags",
}  # fmt: skip
GUESSES = {  # names that columns often have
    "text": ("text", "sentence", "content", "review", "body", "question"),
    "label": ("label", "labels", "class", "category", "sentiment", "answer"),
    "source": ("source", "src", "input", "en", "english", "question", "prompt"),
    "target": ("target", "tgt", "output", "fr", "french", "answer", "completion"),
    "tokens": ("tokens", "words", "sentence"),
    "tags": ("tags", "ner_tags", "pos_tags", "labels"),
}
ROWS = 6  # that are shown
WIDE = 176  # CSS pixels


def first_rows(name: str, table: Table) -> None:
    said = f"{as_text(name)} · {table.count:,} rows, {len(table.columns):,} columns"
    st.caption(f"{said} · {as_text(table.format)}" if table.format else said)
    rows = table.first(ROWS)
    with st.container(key="first rows"):
        st.dataframe(pandas.DataFrame(rows, range(1, len(rows) + 1), table.columns), height="content")


def columns_of(table: Table, turn: str) -> dict[str, str]:
    """Column of the table by the name that a recipe has for it."""
    forms = [form for form in FORMS if len(form) <= len(table.columns)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="columns"):
        at = forms.index(guess_form(table, forms))
        form = st.selectbox("learn from", forms, at, FORM.__getitem__, key=f"{turn} form", width=WIDE)
        chosen: dict[str, str] = {}
        for key in form:
            left = [name for name in table.columns if name not in chosen.values()]
            at = next((left.index(name) for name in left if name.casefold() in GUESSES[key]), 0)
            chosen[key] = st.selectbox(f"column of the {key}", left, at, key=f"{turn} {form} {key}", width=WIDE)
    return chosen


def guess_form(table: Table, forms: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The form that the names of the columns tell, else texts alone, or pairs where there are two columns."""
    names = [name.casefold() for name in table.columns]
    for form in sorted(forms, key=len, reverse=True):
        if all(any(guess in names for guess in GUESSES[key]) for key in form):
            return form
    return forms[0]


def objective_of(offered: list[str], turn: str) -> str:
    return st.selectbox("to be learned", offered, 0, format_value, key=f"{turn} objective", width=220)
