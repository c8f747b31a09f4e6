"""What a session remembers, and what its widgets stand at: with page_state.py the one place that asks Streamlit for it.

Any other value is declared where it is used: one as a `SessionValue`, several that belong together as a class that
`find_record` finds. A widget that no page state declares is read and set by its key.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import streamlit as st

T = TypeVar("T")
Record = TypeVar("Record")


@dataclass(frozen=True)
class SessionValue(Generic[T]):
    """Value under a name that nothing else in a session has; `begin` makes what it is at first."""

    name: str
    begin: Callable[[], T]

    def get(self) -> T:
        if self.name not in st.session_state:
            st.session_state[self.name] = self.begin()
        found: T = st.session_state[self.name]
        return found

    def set(self, value: T) -> None:
        st.session_state[self.name] = value


def find_record(kind: type[Record]) -> Record:
    """The session's record of that kind, begun with its defaults."""
    return SessionValue(f"{kind.__module__}.{kind.__qualname__}", kind).get()


def widget_value(key: str, default: Any = None) -> Any:
    """Value of a widget; the default where there is none, or its page was left meanwhile."""
    return st.session_state.get(key, default)


def set_widget(key: str, value: Any) -> None:
    """Sets a widget, from a callback or before it is drawn."""
    st.session_state[key] = value


def event_value(key: str, event: str) -> Any:
    """Event that a view sent; None where its page was left meanwhile."""
    return getattr(st.session_state.get(key), event, None)


def read_selection(key: str, part: str) -> list[Any]:
    """Selection in a table or a chart: its "rows", or what the chart's selection of that name holds."""
    found = event_value(key, "selection") or {}
    return list(found.get(part) or [])
