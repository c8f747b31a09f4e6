"""A field for a text: a line that is followed as it is typed, and an area where the text has several lines.

For the server it is one widget, Streamlit's line, whatever it holds. In a browser such a line can neither show line
breaks nor take them: assets/views/components/text_lines.js stands an area over it once several lines are there,
pasted or begun.
"""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from pages.controls.state.history import went_back
from views.core.component import view

AREAS = view("components/text_lines")


def several_lines(fields: Iterable[str]) -> None:
    """Lets those of the fields on this page that hold a text hold several lines. Call it once, at a fixed place."""
    texts = {field: str(st.session_state[field]) for field in fields if field in st.session_state}
    lines = {field: text if "\n" in text else "" for field, text in texts.items()}
    AREAS({"fields": lines, "back": texts if went_back() else {}}, key="several lines")
