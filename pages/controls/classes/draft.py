"""Steps of a class session before it is started, and one more while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from engine.checkpoints import shipped_names
from engine.json_text import parse_json
from engine.plurals import count_words
from pages.controls.classes.answering import grade_sample
from pages.controls.classes.kind import check_step, kind_of, kinds
from pages.controls.classes.parameters import TEACH
from pages.controls.classes.who import classes, entry_of, guard, visitor_id
from pages.controls.learn.course import names, read_lesson
from pages.controls.menu import entries
from pages.controls.sign_in import may_start_class
from pages.controls.state.history import entry_address, is_turned
from pages.controls.state.page_state import Here
from pages.controls.state.session import SessionValue, set_widget, widget_value
from server.classes.steps import LONGEST, Step, from_json
from server.classes.store import DAYS
from server.settings import FIRST_MODEL
from views.core.markdown import escape_markdown

DRAFT = SessionValue("steps of a class to be", list[Step])
SAID = SessionValue("why a step was refused", str)
VISITED = SessionValue("class session was visited", bool)
EDITED = SessionValue[int | None]("step that is edited", lambda: None)
SHORT = 60  # characters of a text in a line
TIMES = {0: "no limit", 30: "30 s", 60: "1 min", 120: "2 min", 300: "5 min", 600: "10 min"}
SECRET = SessionValue("secrets of classes", dict[str, str])
BEGUN = SessionValue("classes that this visitor has just begun", set[str])


def read_steps(here: Here) -> list[Step]:
    """The steps that the address brings, once: a page that somebody shares, or those of a session to repeat. What is
    taken out of the address here, the browser says again with the next click, and where it reloads: an address that
    names a room in a visit that begins with it has given its steps to that room."""
    found: list[Step] = []
    reloaded = not VISITED.get() and "room" in entry_address()
    VISITED.set(True)
    if not is_turned() or reloaded:
        return found
    for name in ("steps", "step"):
        if not (said := here.begin(name)):
            continue
        here.assign(name, "")
        try:
            content = parse_json(said)
            found += [check_step(from_json(one)) for one in (content if isinstance(content, list) else [content])]
        except ValueError as error:
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
        draw_line(steps, at, step)
    with st.container(border=True, key="class form"):
        step_form(keep_step)
    st.caption(
        f"Kept on this server: names, answers, and links to what was handed in and to the page that each has open, for "
        f"{DAYS} days or until you delete them. Nothing leaves it."
    )
    may_start = may_start_class()
    if not may_start:
        st.info("Teachers start sessions on this server, and its operator has not listed your address; ask for it.")
    st.button(
        "Start the session", key="class start", type="primary", disabled=not steps or not may_start, on_click=start
    )
    draw_held()


def draw_held() -> None:
    """The sessions that this browser started, with the way to each: the table of one that is over stays until it is
    deleted."""
    for held in classes().rooms_of(visitor_id()):
        day = datetime.fromtimestamp(held.begun, UTC).strftime("%Y-%m-%d")
        with st.container(horizontal=True, vertical_alignment="center"):
            there = f"{day} · {count_words(held.learners, 'learner')}{' · over' if held.closed else ''}"
            st.markdown(escape_markdown(f"{held.code} · {there}"), width="content")
            st.button("Its answers" if held.closed else "Go on", key=f"class go on {held.code}", type="tertiary",
                      on_click=TEACH.choose, args=("room", held.code))  # fmt: skip


@guard
def start() -> None:
    if not may_start_class():
        return  # whatever a browser sends
    code, secret = classes().start(visitor_id(), DRAFT.get())
    SECRET.get()[code] = secret
    BEGUN.get().add(code)
    DRAFT.set([])
    TEACH.choose("room", code)


def step_name(step: Step) -> str:
    entry = entry_of(step.page)
    kind = kind_of(step)
    said = f" · {step.sentence}" if step.sentence else ""
    return f"{entry.title if entry else step.page}: {kind.title.rstrip(' …')}{kind.detail(step)}{said}"


def step_details(step: Step) -> str:
    """The model, text and time of a step."""
    time = f"{TIMES.get(step.seconds, f'{step.seconds} s')}{', then closed' if step.closes else ''}"
    text = step.query.get("text", "")
    shown = [step.query.get("lesson", step.query.get("model", "")), f"“{text[:SHORT]}”" if text else ""]
    shown += [" / ".join(step.options), time if step.seconds else "", "own texts count" if step.own_text else ""]
    return " · ".join(filter(None, [*shown, "answer shown at once" if step.at_once else ""]))


def draw_line(steps: list[Step], at: int, step: Step) -> None:
    """Draws a step of the draft, with what can be done with it."""
    acts: dict[str, tuple[str, Callable[[], None]]] = {
        "arrow_upward": ("Move up", partial(move, steps, at, -1)),
        "arrow_downward": ("Move down", partial(move, steps, at, 1)),
        "edit": ("Edit", partial(edit, steps, at)),
        "content_copy": ("Copy", partial(steps.insert, at, step)),
        "delete": ("Remove", partial(remove, steps, at)),
    }
    ends = {"arrow_upward": at == 0, "arrow_downward": at == len(steps) - 1}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        with st.container(gap=None):
            edited = " (edited below)" if EDITED.get() == at else ""
            st.markdown(escape_markdown(f"{at + 1}. {step_name(step)}{edited}"))
            st.caption(escape_markdown(step_details(step)))
        for icon, (said, act) in acts.items():
            st.button(
                "", key=f"class {icon} {at}", type="tertiary", icon=f":material/{icon}:", help=escape_markdown(said),
                on_click=act, disabled=ends.get(icon, False),
            )  # fmt: skip


def move(steps: list[Step], at: int, by: int) -> None:
    steps[at], steps[at + by] = steps[at + by], steps[at]
    EDITED.set(None)


def remove(steps: list[Step], at: int) -> None:
    steps.pop(at)
    EDITED.set(None)


def edit(steps: list[Step], at: int) -> None:
    """Puts a step into the form, whose button then keeps it in its place."""
    step = steps[at]
    EDITED.set(at)
    said = {
        "kind": step.kind, "page": step.page, "model": step.query.get("model", FIRST_MODEL),
        "text": step.query.get("text", ""), "lesson": step.query.get("lesson", names()[0]), "sentence": step.sentence,
        "wanted": step.wanted, "pattern": step.pattern, "seconds": step.seconds, "closes": step.closes,
        "own text": step.own_text, "at once": step.at_once, "options": "\n".join(step.options), "right": step.right + 1,
        "program": step.program or None,
    }  # fmt: skip
    for name, value in said.items():
        set_widget(f"class {name}", value)


def keep_step(step: Step) -> None:
    """Adds a step to the draft, or puts it in place of the one that is edited."""
    at, steps = EDITED.get(), DRAFT.get()
    if at is None or at >= len(steps):
        steps.append(step)
    else:
        steps[at] = replace(step, query={**steps[at].query, **step.query}, looked=steps[at].looked)
    EDITED.set(None)


def step_form(add: Callable[[Step], None]) -> None:
    """Fields of one step; `add` is called with it."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        titles = {name: one.title for name, one in kinds().items()}
        kind = kinds()[st.selectbox("ask", list(titles), key="class kind", width=240, format_func=titles.__getitem__)]
        pages = [] if kind.only else [one.address for one in entries() if one.opens]
        pages += [] if kind.about_run else kind.pages
        page = st.selectbox("on the page", pages, key="class page", width=180, format_func=page_title)
        if page == "course":
            st.selectbox("lesson", names(), key="class lesson", format_func=lesson_title, width=320)
        elif page != "train":
            if not kind.brings_model:
                st.selectbox("model", shipped_names(), shipped_names().index(FIRST_MODEL), key="class model", width=160)
            st.text_input("text", key="class text", placeholder="the model’s example")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input("what you say to the class", key="class sentence", max_chars=LONGEST)
        st.selectbox("time", list(TIMES), key="class seconds", width=110, format_func=TIMES.__getitem__)
    kind.draw_parts()
    with st.container(horizontal=True, vertical_alignment="center"):
        if widget_value("class seconds", 0):
            st.toggle("no answers after that time", key="class closes")
        if kind.about_run and not kind.free_text:
            st.toggle("a text of their own counts", key="class own text")
        if kind.at_once:
            st.toggle("answer shown at once", key="class at once")
        label = "Add the step" if EDITED.get() is None else "Keep the step"
        st.button(label, key="class add", type="secondary", on_click=add_step, args=(add,))
    if SAID.get():
        st.warning(escape_markdown(SAID.get()))
        SAID.set("")


def lesson_title(name: str) -> str:
    return read_lesson(name).title


def page_title(address: str) -> str:
    return next(one.title for one in entries() if one.address == address)


def add_step(add: Callable[[Step], None]) -> None:
    kind, page = kinds()[str(widget_value("class kind"))], str(widget_value("class page"))
    model, text = str(widget_value("class model", FIRST_MODEL)), str(widget_value("class text", "")).strip()
    query = {"model": model, **({"text": text} if text else {})}
    if page in ("course", "train"):
        query = {"lesson": str(widget_value("class lesson"))} if page == "course" else {}
    try:
        step = Step(
            page, query, kind.name, str(widget_value("class sentence", "")).strip(),
            at_once=bool(widget_value("class at once", False)), seconds=int(widget_value("class seconds", 0)),
            closes=bool(widget_value("class closes", False)), own_text=bool(widget_value("class own text", False)),
            **kind.read_parts(),
        )  # fmt: skip
        step = kind.prepare(step)
        check_askable(check_step(step))
        add(step)
    except (ValueError, OSError) as error:
        SAID.set(str(error)[:1].upper() + str(error)[1:])


def check_askable(step: Step) -> None:
    """Raises ValueError, with a sentence, for what nobody could answer on the page of a step."""
    if not kind_of(step).about_run:
        return
    if step.page in ("course", "train"):
        raise ValueError("this question is about a page that runs a model; choose one, such as Walkthrough.")
    grade_sample(step)
