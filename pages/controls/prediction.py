"""Predict, then reveal: a reader guesses before a page shows what was computed.

What is asked, which run is revealed and what was guessed stand in the address, so that a link and a reload keep them,
and they go along from page to page.
"""

from __future__ import annotations

import streamlit as st

from pages.controls.state.history import READABLE
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Text
from pages.controls.state.session import widget_value
from views.core.markdown import escape_markdown

PREDICTION = PREDICT, REVEALED, GUESS = "predict", "revealed", "guess"  # in an address
ASKED = PageState("prediction", *(Text(name, "", READABLE, carried=True) for name in PREDICTION))  # on any page
EDITS, RUN = "edits", "run"  # what is guessed at: what edits do, or also what a page shows without them
LONGEST = 300  # characters of a guess


def read_entry(name: str) -> str:
    text: str = ASKED.open().begin(name)
    return text


def remember(**told: str) -> None:
    """Sets entries, from a callback."""
    for name, text in told.items():
        ASKED.choose(name, text)


def predicts_edits() -> bool:
    return read_entry(PREDICT) in (EDITS, RUN)


def predicts_runs() -> bool:
    return read_entry(PREDICT) == RUN


def is_revealed(run: str) -> bool:
    """`run` is the digest of what is guessed at."""
    return read_entry(REVEALED) == run


def await_guess(run: str) -> None:
    """Ends the page with a field until a guess about `run` is written, and shows it then; does nothing unless a link
    asks for it."""
    if not predicts_runs():
        return
    if is_revealed(run):
        if guess := read_entry(GUESS):
            st.markdown(f"**Your guess** &nbsp;{escape_markdown(guess)}")
        return
    field = f"guess about {run}"

    def reveal() -> None:
        if guess := widget_value(field, "").strip():
            remember(**{REVEALED: run, GUESS: guess})

    with st.form(f"prediction of {run}"):
        st.text_input("What will this page show? Guess first.", key=field, max_chars=LONGEST)
        st.form_submit_button("Reveal", type="primary", on_click=reveal)
    st.stop()
