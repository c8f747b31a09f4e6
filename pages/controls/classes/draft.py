"""Steps of a class session before it is started, and one more while it goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import cast

import streamlit as st

from engine.checkpoints import shipped_names
from engine.classes.steps import LONGEST, PATTERNS, WANTED, Kind, Pattern, Step, from_json
from engine.classes.store import DAYS
from engine.runtime.limits import FIRST_MODEL
from pages.controls.classes.parameters import TEACH
from pages.controls.classes.who import classes, entry_of, guard, whose
from pages.controls.menu import entries
from pages.controls.sign_in import may_start_class
from pages.controls.state.history import is_turned
from pages.controls.state.page_state import Here
from pages.controls.state.session import Remembered, widget_value
from views.core.markdown import escape_markdown

KINDS: dict[Kind, str] = {
    "look": "look at this", "words": "answer in words", "next": "guess the next token",
    "share": "estimate how likely it is", "loss": "estimate the loss of the text", "head": "find a head",
    "say": "make the model say …", "hand in": "change something and hand it in", "run": "train, and hand in the run",
}  # fmt: skip
DRAFT = Remembered("steps of a class to be", list[Step])
SAID = Remembered("why a step was refused", str)
TIMES = {0: "no limit", 30: "30 s", 60: "1 min", 120: "2 min", 300: "5 min", 600: "10 min"}
SECRET = Remembered("secrets of classes", dict[str, str])


def read_steps(here: Here) -> list[Step]:
    """The steps that the address brings, once: a page that somebody shares, or those of a session to repeat. What is
    taken out of the address here, the browser says again with the next click."""
    found: list[Step] = []
    if not is_turned():
        return found
    for name in ("steps", "step"):
        if not (said := here.begin(name)):
            continue
        here.assign(name, "")
        try:
            content = json.loads(said)
            found += [from_json(one) for one in (content if isinstance(content, list) else [content])]
        except (ValueError, RecursionError) as error:
            st.warning(escape_markdown(f"A step of this link could not be read: {error}"))
    return found


def draw_draft(here: Here) -> None:
    DRAFT.set([*DRAFT.get(), *read_steps(here)])
    st.markdown("## Class session")
    st.markdown(
        "One question, thirty answers, and the engine knows which are right. Make the steps, start, and show the code: "
        "learners join on their phones, and what they hand in is graded by what *their* page computes."
    )
    steps = DRAFT.get()
    for at, step in enumerate(steps):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(escape_markdown(f"{at + 1}. {step_name(step)}"), width="stretch")
            st.button("Remove", key=f"class remove {at}", type="tertiary", on_click=steps.remove, args=(step,))
    with st.container(border=True):
        step_form(DRAFT.get().append)
    st.caption(
        f"Kept on this server: names, answers and links to what was handed in, for {DAYS} days or until you delete "
        "them. Nothing leaves it."
    )
    may_start = may_start_class()
    if not may_start:
        st.info("Teachers start sessions on this server, and its operator has not listed your address; ask for it.")
    st.button("Start the session", key="class start", type="primary", disabled=not steps or not may_start,
              on_click=start)  # fmt: skip
    for code in classes().rooms_of(whose()):
        st.button(
            escape_markdown(f"Go on with {code}"), key=f"class go on {code}", type="tertiary", on_click=TEACH.choose,
            args=("room", code),
        )


@guard
def start() -> None:
    if not may_start_class():
        return  # whatever a browser sends
    code, secret = classes().start(whose(), DRAFT.get())
    SECRET.get()[code] = secret
    DRAFT.set([])
    TEACH.choose("room", code)


def step_name(step: Step) -> str:
    entry = entry_of(step.page)
    asked = {"head": f": {PATTERNS[step.pattern]}", "say": f" “{step.wanted}”"}.get(step.kind, "")
    said = f" · {step.sentence}" if step.sentence else ""
    return f"{entry.title if entry else step.page}: {KINDS[step.kind].rstrip(' …')}{asked}{said}"


def step_form(add: Callable[[Step], None]) -> None:
    """Fields of one step; `add` is called with it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        kind = st.selectbox("ask", list(KINDS), key="class kind", width=240, format_func=KINDS.__getitem__)
        pages = [one.address for one in entries() if one.opens] + ["course", "train"]
        st.selectbox("on the page", pages, key="class page", width=180, format_func=page_title)
        st.selectbox("model", shipped_names(), shipped_names().index(FIRST_MODEL) if FIRST_MODEL in shipped_names()
                     else 0, key="class model", width=160)  # fmt: skip
        st.text_input("text", key="class text", placeholder="the model’s example")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("what you say to the class", key="class sentence", max_chars=LONGEST)
        if kind == "say":
            st.text_input("word", key="class wanted", max_chars=WANTED, width=160)
        if kind == "head":
            st.selectbox("looks at", list(PATTERNS), key="class pattern", width=280, format_func=PATTERNS.__getitem__)
        st.selectbox("time", list(TIMES), key="class seconds", width=110, format_func=TIMES.__getitem__)
        st.toggle("answer shown at once", key="class at once")
        st.button("Add the step", key="class add", on_click=add_step, args=(add,))
    if SAID.get():
        st.warning(escape_markdown(SAID.get()))
        SAID.set("")


def page_title(address: str) -> str:
    return next(one.title for one in entries() if one.address == address)


def add_step(add: Callable[[Step], None]) -> None:
    query = {"model": str(widget_value("class model"))}
    if text := str(widget_value("class text", "")):
        query["text"] = text
    page = str(widget_value("class page"))
    try:
        step = Step(
            page, {} if page in ("course", "train") else query, cast(Kind, widget_value("class kind")),
            str(widget_value("class sentence", "")).strip(), str(widget_value("class wanted", "")).strip(),
            cast(Pattern, widget_value("class pattern", "previous")), bool(widget_value("class at once")),
            int(widget_value("class seconds", 0)),
        )  # fmt: skip
        add(step)
    except ValueError as error:
        SAID.set(str(error)[:1].upper() + str(error)[1:])
