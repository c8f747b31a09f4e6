"""Predict, then reveal: a reader guesses before a page shows what was computed.

What is asked, which run is revealed and what was guessed stand in the address, so that a link and a reload keep them,
and they go along from page to page.
"""

from __future__ import annotations

import streamlit as st

from views.core.markdown import escape_markdown

PREDICTION = PREDICT, REVEALED, GUESS = "predict", "revealed", "guess"  # in an address
KEPT = "prediction"  # in the session state
EDITS, RUN = "edits", "run"  # what is guessed at: what edits do, or also what a page shows without them
LONGEST = 300  # characters of a guess


def entries() -> dict[str, str]:
    """Entries of the prediction in the address, or kept from the page before; updates the address to hold them all."""
    kept: dict[str, str] = st.session_state.setdefault(KEPT, {})
    kept |= {name: st.query_params[name] for name in PREDICTION if name in st.query_params}
    for name, text in kept.items():
        if st.query_params.get(name) != text:
            st.query_params[name] = text
    return kept


def remember(**said: str) -> None:
    """An empty text takes its entry away."""
    kept = entries()
    for name, text in said.items():
        if text:
            kept[name] = st.query_params[name] = text
        else:
            kept.pop(name, None)
            st.query_params.pop(name, None)


def predicts_edits() -> bool:
    return entries().get(PREDICT) in (EDITS, RUN)


def predicts_runs() -> bool:
    return entries().get(PREDICT) == RUN


def is_revealed(run: str) -> bool:
    """`run` is the digest of what is guessed at."""
    return entries().get(REVEALED) == run


def await_guess(run: str) -> None:
    """Ends the page with a field until a guess about `run` is written, and shows it then; does nothing unless a link
    asks for it."""
    if not predicts_runs():
        return
    if is_revealed(run):
        if guess := entries().get(GUESS):
            st.markdown(f"**Your guess** &nbsp;{escape_markdown(guess)}")
        return
    field = f"guess about {run}"

    def reveal() -> None:
        if guess := st.session_state[field].strip():
            remember(**{REVEALED: run, GUESS: guess})

    with st.form(f"prediction of {run}"):
        st.text_input("What will this page show? Guess first.", key=field, max_chars=LONGEST)
        st.form_submit_button("Reveal", type="primary", on_click=reveal)
    st.stop()
