"""What a class link hides, as the session remembers it."""

from __future__ import annotations

from collections.abc import Sequence

from pages.controls.state.session import SessionValue

HIDE = "hide"  # in a link
HIDDEN = SessionValue[Sequence[str]]("hidden controls", tuple)

TEACHERS = "teachers"  # what is for them alone, which every class link hides


def is_hidden(*names: str) -> bool:
    """Tells whether a link hid one of these controls, so that nothing else may change what it holds."""
    return any(name in HIDDEN.get() for name in names)
