"""Controls that a teacher hides in a link: what can be hidden on whichever page, and what goes with it."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from pages.controls.menu import hideable
from pages.controls.model_input.parameters import INPUT
from pages.controls.state.page_state import STATES

# Every control that no page state declares, by its key.
OTHERS = {"what if": "what if …", **hideable()}
# What goes with a control because a click on it changes what that holds.
CHANGERS = dict.fromkeys(("text", "second", "target", "span"), ["example text"])
CHANGERS |= {"long_text": ["example of long_text"]}
CHANGERS |= {
    f"{letter.lower()}_{name}": ["sides together", f"example of {letter}"]
    for letter in "ABCD"
    for name in ("step", "edits", *(parameter.name for parameter in INPUT))
}
CHANGERS |= {"lesson fields": ["lesson again"]}
# What Streamlit calls the element of a key, where not by the key.
ELEMENTS = {"what if": ".st-key-experiment-edits", "numbers": '[class*="st-key-numbers-"]'}
ELEMENTS |= {"picture": ".st-key-picture, .st-key-own-picture"}
ELEMENTS |= {
    "lesson fields": '.st-key-experiment :is([data-testid="stTextInput"], [data-testid="stTextArea"])',
    "lesson show": '.st-key-experiment [class*="question-show"]',
    "lesson again": '.st-key-experiment [class*="question-again"]',
}
ELEMENTS |= {f"{letter}_edits": f".st-key-{letter}_edits-button" for letter in "abcd"}
ELEMENTS |= {f"{letter}_picture": f".st-key-{letter}_picture, .st-key-{letter}_own-popover" for letter in "abcd"}


def hideable_names() -> dict[str, str]:
    """Names of all controls that links of the pages known so far can hide, by key."""
    return OTHERS | {key: name for state in STATES for key, name in state.hideable.items()}


def hideable_controls(keys: Iterable[str]) -> list[list[str]]:
    """Controls of a page that its links can hide, with their names, for the toolbar."""
    known = hideable_names()
    return [[key, known[key]] for key in keys if key in known]


def hiding_css(names: Iterable[str]) -> str:
    """CSS that takes controls out of sight, and with them what would change what they hold."""
    hideable = hideable_names()
    known = [name for name in names if name in hideable]
    gone = dict.fromkeys(chain(known, *(CHANGERS.get(name, ()) for name in known)))
    known = [ELEMENTS.get(name, f".st-key-{name.replace(' ', '-')}") for name in gone]
    return ", ".join(known) + " { display: none !important; }" if known else ""
