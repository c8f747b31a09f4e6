"""The recipe as text, in TOML: it follows the controls until somebody writes in it, and is applied on demand."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from pages.controls.share.links import as_text

HIGH = 420  # CSS pixels


def text_of_recipe(turn: str, text: str, apply: Callable[[str], None]) -> None:
    """`text` is what the controls say; `apply` takes what is written, and raises ValueError where it cannot."""
    state, key = st.session_state, f"{turn} text"
    made, wrong = f"{key} made", f"{key} wrong"
    if key not in state or state[key] == state.get(made):
        state[key] = state[made] = text
        state.pop(wrong, None)
    elif state[key] == text:
        state[made] = text

    def apply_text() -> None:
        try:
            apply(state[key])
        except ValueError as error:
            state[wrong] = str(error)

    def discard_text() -> None:
        state[key] = state[made] = text
        state.pop(wrong, None)

    st.text_area("recipe in TOML", key=key, height=HIGH, label_visibility="collapsed")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button("Apply", key=f"{key} apply", on_click=apply_text, help="The controls then say what is written here.")
        written = state[key] != text
        st.button("Discard", key=f"{key} discard", on_click=discard_text, disabled=not written,
                  help="Back to what the controls say.")  # fmt: skip
        if written:
            st.caption("The controls say something else, and it is what they say that is trained.")
    if wrong in state:
        st.warning(as_text(state[wrong]))
