"""Two pages with a number of each kind, a choice and a text, on tabs, as the state machine of their states needs."""

import streamlit as st

from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Choice, Number, Text, choice

KINDS = {"plain": 1, "asking": 5}  # kind -> default of `count`


def page(name: str) -> PageState:
    return PageState(
        name,
        choice("kind", "plain", KINDS, label="kind"),
        choice("tab", "one", ("one", "two"), label="tab"),
        Number("count", 1, 0, 9, label="count"),
        Number("share", 0.5, 0.0, 1.0, step=0.25, label="share"),
        Choice("color", "r", {"r": "deep red", "g": "green"}, label="color"),
        Text("word", "", 12, label="word"),
    )


PAGES = {name: page(name) for name in ("first", "second")}
TABS = {"one": ("count", "color"), "two": ("share", "word")}


def draw(state: PageState) -> None:
    here = state.open()
    kind = here.segments("kind")
    here.set_defaults(count=KINDS[kind])
    tab = here.segments("tab")
    if tab == "one":
        here.slider("count")
        here.segments("color")
    else:
        here.number("share")
        here.text("word")
    st.button("five", on_click=state.choose, args=("count", 5))
    st.button("hello", on_click=state.choose, args=("word", "hello"))
    st.json({"values": {name: here[name] for name in state.parameters}, "link": here.link(*state.parameters)})
