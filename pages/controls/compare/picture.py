"""The picture that a side of a comparison reads: one of the shipped ones by its number, or a person's own."""

from __future__ import annotations

from functools import partial
from io import BytesIO
from typing import Any, LiteralString

import streamlit as st

from engine.inputs.readers import pictures
from pages.controls.compare.defaults import Sides
from pages.controls.compare.parameters import key, value
from pages.controls.state.page_state import Here
from pages.controls.state.session import find_record, widget_value


def picture_of(here: Here, letter: LiteralString) -> None:
    """Chooses one of the shipped pictures, or one of the person's own."""
    own, sides, last = key(letter, "own"), find_record(Sides), len(pictures()[0]) - 1
    theirs = bool(sides.pictures.get(letter))
    here.number(key(letter, "picture"), last, label=f"picture of {letter}, 0 to {last}", width=150, disabled=theirs)
    with st.popover("your own ✓" if theirs else "your own", width=115, key=f"{own} popover"):
        chosen = f"{own} file {sides.uploads}"
        st.file_uploader(
            f"A picture for {letter} (PNG, JPEG, …)", key=chosen, on_change=partial(take_picture, letter, chosen)
        )
        if theirs:
            away = partial(sides.pictures.update, {letter: b""})
            st.button("The numbered one", key=f"numbered {letter}", on_click=away)


def take_picture(letter: LiteralString, chosen: str) -> None:
    """Keeps what was uploaded with the other things of a side: it is swapped and copied with them."""
    file, sides = widget_value(chosen), find_record(Sides)
    if file is not None:
        sides.pictures[letter] = file.getvalue()
        sides.uploads += 1  # an uploader that holds no file any more


def picture_value(letter: LiteralString, field: str) -> Any:
    """Value of a field of a side; "upload" is the file of the person's own picture, if there is one."""
    if field != "upload":
        return value(letter, field)
    picture = find_record(Sides).pictures.get(letter)
    return BytesIO(picture) if picture else None
