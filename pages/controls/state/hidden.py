"""What a class link hides, as the session remembers it."""

from __future__ import annotations

import streamlit as st

HIDDEN = "hidden controls"  # in the session state: their names


def is_hidden(*names: str) -> bool:
    """Tells whether a link hid one of these controls, so that nothing else may change what it holds."""
    return any(name in st.session_state.get(HIDDEN, []) for name in names)
