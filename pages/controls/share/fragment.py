"""Links of earlier versions of a page, whose state stood behind the #: what of them is a control of Streamlit today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from views.core.component import view

Adopt = Callable[[Any], tuple[str, str]]  # an entry's value -> the key of today's control, and its text in an address

entries = view("share/fragment", events=("entries",))


def adopt_fragment(names: Mapping[str, Adopt], place: str, key: str = "fragment") -> None:
    """Puts into the session's state, under `place`, what the address has behind the # when the page is opened.

    It reruns the page where there is something: {key of the control: its text, as a query would have it}.
    """

    def adopt() -> None:
        found = st.session_state[key].entries
        known = {name: value for name, value in found.items() if name in names} if isinstance(found, dict) else {}
        st.session_state[place] = dict(names[name](value) for name, value in known.items())

    entries({"names": list(names)}, key=key, on={"entries": adopt})
