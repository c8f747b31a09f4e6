"""Links: what stands in one, what of a link could not be restored, and the controls that a teacher hid in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import streamlit as st

from engine import library
from pages.controls.subject import EMPTY, EVERY_FIELD, KEPT, given, seed

VERSION = 1
HIDE, VERSIONED = "hide", "v"
HIDDEN, LOST = "hidden controls", "lost from the link"  # in the session state
PAGE, SINCE = "page of the link", "shown with the link"
HIDEABLE = (*EVERY_FIELD, "model", "attention", "temperature", "top_k", "top_p", "what if")
CONTROLS: dict[str, tuple[float, float]] = {
    "attention": (0.1, 4.0),
    "temperature": (0.0, 3.0),
    "top_k": (0, 100),
    "top_p": (0.05, 1.0),
}
NAMED = 5  # of what is lost; the others are counted
MARKUP = re.compile(r"([\\`*_{}\[\]()<>#|~$:])")  # what Markdown and Streamlit would make more of than text
LINKED = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)|(?<=@)", re.IGNORECASE)  # where Markdown finds links by itself
ELEMENTS = {"what if": "experiment-panel"}  # what Streamlit calls the element of a key, where not by the key


def address_of(model: str, fields: Sequence[str], controls: Sequence[str]) -> dict[str, str]:
    """The query of a link to what is shown now: version, model, fields, controls off their defaults, edits."""
    found: dict[str, Any] = {VERSIONED: VERSION, "model": model, **{field: given(field) for field in fields}}
    found |= {key: value for key in controls if key in CONTROLS and (value := given(key)) != EMPTY.get(key, 1.0)}
    for kept in ("edits", "seed"):
        if kept in st.query_params:
            found[kept] = st.query_params[kept]
    return {key: str(value) for key, value in found.items() if key == "model" or value != ""}


def honour_link() -> None:
    """Says above the page what of its link could not be restored, and hides what the link hides. Call it before the
    controls are drawn: they drop from the address what they cannot use."""
    state = st.session_state
    if HIDE in st.query_params:
        state[HIDDEN] = [name for name in st.query_params[HIDE].split(",") if name]
    if state.get(PAGE) != state.page:
        state[PAGE], state[SINCE] = state.page, None
        state[LOST] = lost(dict(st.query_params), state.get(HIDDEN, []))
    elif state[SINCE] is None:
        state[SINCE] = state.get(KEPT)
    elif state[SINCE] != state.get(KEPT):
        state[LOST] = []  # the person looks at something else now
    if state[LOST]:
        more = len(state[LOST]) - NAMED
        named = [as_text(part) for part in state[LOST][:NAMED]]
        parts = "; ".join([*named, *([f"and {more} more"] if more > 0 else [])])
        st.info(f"Not all of this link could be restored: {parts}. Everything else is as it was saved.")
    if rules := hiding(state.get(HIDDEN, [])):
        st.html(f"<style>{rules}</style>")


def as_text(said: str) -> str:
    """Markdown that reads as what is said: an address may say anything, and it must not become a picture or a link."""
    return MARKUP.sub(r"\\\1", LINKED.sub("\N{WORD JOINER}", said))


def hiding(names: Iterable[str]) -> str:
    """CSS that takes controls out of sight; they keep what the link gives them."""
    known = [ELEMENTS.get(name, name) for name in names if name in HIDEABLE]
    return ", ".join(f".st-key-{name}" for name in known) + " { display: none !important; }" if known else ""


def lost(said: dict[str, str], hidden: Sequence[str]) -> list[str]:
    """What an address says that makes no sense here: a part of a sentence for each."""
    found: list[str] = []
    version = said.get(VERSIONED, str(VERSION))
    if version != str(VERSION):
        found.append(f"it is of version {version[:20]!r} and this Loupe reads version {VERSION}")
    model = said.get("model")
    if model is not None and not library.knows(model):
        found.append(f"the model {model[:80]!r} is not here")
    for key, (low, high) in CONTROLS.items():
        if key in said and not within(said[key], low, high):
            found.append(f"{key} is {said[key][:20]!r} and must be a number from {low:g} to {high:g}")
    for key in ("picture", "given"):
        if key in said and not said[key].isdecimal():
            found.append(f"{key} is {said[key][:20]!r} and must be a whole number")
    found += [f"there is no control {name[:40]!r} to hide" for name in hidden if name not in HIDEABLE]
    if "seed" in said and str(seed()) != said["seed"]:
        found.append(f"the seed {said['seed'][:20]!r} is no whole number")
    return found


def within(text: str, low: float, high: float) -> bool:
    try:
        return low <= float(text) <= high
    except ValueError:
        return False
