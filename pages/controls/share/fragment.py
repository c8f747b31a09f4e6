"""Links of earlier versions of a page, whose state stood behind the #: what of them is a control of Streamlit today."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pages.controls.state.session import event_value
from views.core.component import view

Adopt = Callable[[Any], tuple[str, str]]  # an entry's value -> the key of today's control, and its text in an address

entries = view("share/fragment", events=("entries",))


def adopt_fragment(names: Mapping[str, Adopt], say: Callable[[Mapping[str, str]], None], key: str = "fragment") -> None:
    """Calls `say` with what the address has behind the # when the page is opened, and runs the page again where there
    is something: {key of the control: its text, as a query would have it}."""

    def adopt() -> None:
        found = event_value(key, "entries")
        known = {name: value for name, value in found.items() if name in names} if isinstance(found, dict) else {}
        say(dict(names[name](value) for name, value in known.items()))

    entries({"names": list(names)}, key=key, on={"entries": adopt})
