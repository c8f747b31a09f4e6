"""What a session remembers beside the values of widgets: one typed record for each class that is asked for."""

from __future__ import annotations

from typing import TypeVar

import streamlit as st

Record = TypeVar("Record")


def find_record(kind: type[Record]) -> Record:
    """The session's record of that kind, begun with its defaults."""
    found: Record = st.session_state.setdefault(f"{kind.__module__}.{kind.__qualname__}", kind())
    return found
