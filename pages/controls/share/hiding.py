"""Controls that a teacher hides in a link, as the pages declare them."""

from __future__ import annotations

from collections.abc import Iterable

from pages.controls.state.page_state import STATES
from pages.controls.state.parameter import Hideable


def hideable_parts() -> dict[str, Hideable]:
    """All that links of the pages known so far can hide, by key."""
    return {key: part for state in STATES for key, part in state.hideable.items()}


def hideable_names() -> dict[str, str]:
    return {key: part.hidden_as for key, part in hideable_parts().items()}


def hideable_controls(keys: Iterable[str]) -> list[list[str]]:
    """Controls of a page that its links can hide, with their names, for the toolbar."""
    known = hideable_names()
    return [[key, known[key]] for key in keys if key in known]


def hiding_css(names: Iterable[str]) -> str:
    """CSS that takes controls out of sight, and with them what would change what they hold."""
    parts = hideable_parts()
    gone = dict.fromkeys(one for name in names if name in parts for one in parts[name].selectors)
    return ", ".join(gone) + " { display: none !important; }" if gone else ""
