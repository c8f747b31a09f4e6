"""The picture that a side of a comparison reads: one of the shipped ones by its number, or a person's own."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import Any, LiteralString

import streamlit as st

from engine.inputs.readers import pictures
from pages.controls.compare.defaults import PICTURE, key
from pages.controls.model_input.model_input import EMPTY

TURN = "pictures taken"  # in the session state: how many were uploaded, so that each has an uploader of its own


def picture_of(letter: LiteralString) -> None:
    """Chooses one of the shipped pictures, or one of the person's own."""
    state, own = st.session_state, key(letter, "picture")
    last, theirs = len(pictures()[0]) - 1, bool(state.get(key(letter, PICTURE)))
    state[own] = min(state[own], last)
    st.number_input(f"picture of {letter}, 0 to {last}", 0, last, key=own, width=150, disabled=theirs)
    with st.popover("your own ✓" if theirs else "your own", width=115, key=f"{key(letter, PICTURE)} popover"):
        chosen = f"{key(letter, PICTURE)} file {state.setdefault(TURN, 0)}"
        st.file_uploader(
            f"A picture for {letter} (PNG, JPEG, …)", key=chosen, on_change=partial(take_picture, letter, chosen)
        )
        if theirs:
            st.button("The numbered one", key=f"numbered {letter}", on_click=put, args=(key(letter, PICTURE), b""))


def take_picture(letter: LiteralString, chosen: str) -> None:
    """Keeps what was uploaded with the other things of a side: it is swapped and copied with them."""
    file = st.session_state[chosen]
    if file is not None:
        put(key(letter, PICTURE), file.getvalue())
        st.session_state[TURN] += 1  # an uploader that holds no file any more


def put(own: str, value: Any) -> None:
    st.session_state[own] = value


def picture_value(letter: LiteralString, field: str) -> Any:
    """Value of a field of a side; "upload" is the file of the person's own picture, if there is one."""
    state = st.session_state
    if field == "upload":
        picture = state.get(key(letter, PICTURE))
        return BytesIO(picture) if isinstance(picture, bytes) and picture else None
    return state.get(key(letter, field), EMPTY.get(field, ""))
