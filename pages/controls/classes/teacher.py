"""The teacher's side of a class session that goes on: who is here, what is handed in, and what everybody sees next."""

from __future__ import annotations

import json
from functools import partial

import pandas as pd
import streamlit as st

from engine.plurals import count_words
from pages.controls.classes.answering import glance
from pages.controls.classes.draft import BEGUN, SECRET, read_steps, step_form, step_name
from pages.controls.classes.grades import close_room
from pages.controls.classes.kind import kind_of, make_ready
from pages.controls.classes.parameters import TEACH
from pages.controls.classes.tallies import draw_chart, page_address, show_page
from pages.controls.classes.who import (
    classes,
    draw_trouble,
    draw_unreachable,
    entry_of,
    follow,
    guard,
    tell_news,
    visitor_id,
)
from pages.controls.menu import Entry
from pages.controls.share.class_link import class_link, draw_svg, show_link
from pages.controls.share.export import data_file
from pages.controls.state.page_state import Here
from pages.controls.state.session import widget_value
from server.classes.steps import Step, to_json
from server.classes.store import Answer, Learner, Room, Unreachable, check_look
from views.charts.show import current_shade
from views.classes.tally import (
    compare_rooms,
    list_answers,
    list_questions,
    paint_pattern,
    tabulate,
)
from views.core.component import view
from views.core.markdown import escape_markdown
from views.core.table_files import Format

QR_WIDTH = 220  # CSS pixels
CARD = 180  # CSS pixels
SHORT = 200  # characters of an answer that is shown to all
SHOWN = 40  # answers that are listed, the best or the last
NAMES, SURE, EVERYBODY = "class names", "class sure", "class everybody"
EVERY = 3.0  # seconds between two looks at everybody's page
PIXELS = "<style>:is(.st-key-class-answers, .st-key-class-everybody) img { image-rendering: pixelated }</style>"
screen = view("classes/screen")  # opens the projector's view, on a second screen where there is one


def open_room(here: Here) -> Room | None:
    """The room that the address or this session names, of whoever may teach it; a sentence says why it is none."""
    code = here["room"].strip().upper()
    secret = here.begin("secret")
    if secret:
        here.assign("secret", "")  # the address is on the projector
        SECRET.get()[code] = secret
    if not code:
        return None
    if not classes().may_teach(code, SECRET.get().get(code, ""), visitor_id()):
        here.assign("room", "")
        st.warning(f"The teacher’s side of {escape_markdown(code)} needs the link that starting the session gave.")
        return None
    here.assign("room", code)
    return classes().find(code)


def draw_room(here: Here, room: Room) -> None:
    """Draws it. A page that somebody shares while the class goes on becomes its last step."""
    if steps := read_steps(here):
        try:
            classes().add_steps(room.code, steps)
        except ValueError as error:
            st.warning(escape_markdown(str(error)[:1].upper() + str(error)[1:]))
    follow_room(room.code)


@st.fragment
def follow_room(code: str) -> None:
    if (found := follow(code)) is None:
        return
    room, learners, answers = found
    make_ready(room.step)
    draw_trouble()
    with st.container(horizontal=True, vertical_alignment="center", key="class-head"):
        st.markdown(f"# {escape_markdown(code)}", width="content")
        here = [one for one in learners if one.is_here]
        mine = [one for one in answers if one.step == room.at]
        st.markdown(f"**{len(here)}** here · **{len(mine)}** of {len(learners)} handed in", width="stretch")
        draw_people(room, learners)
        tell_news(room)
    with st.expander("Invitation", expanded=not answers):
        draw_invitation(code)
        screen(
            {"address": page_address("teach", {"room": code, "screen": "projector"}), "begun": code in BEGUN.get()},
            key="class projector",
        )
    steps, tally = st.columns([2, 3], gap="medium")
    with steps:
        draw_steps(room)
    with tally:
        if st.toggle("everybody’s page", key=EVERYBODY):
            draw_everybody(code)
        else:
            draw_tally(room, learners, mine)
    draw_end(room, learners, answers)


def draw_people(room: Room, learners: list[Learner]) -> None:
    """Draws the people in the session, and who may come in."""
    popover = st.popover("Who is in it", key="class people", on_change="rerun")
    if not popover.open:
        return
    with popover:
        st.toggle("others may join", not room.enrolment_closed, key="class open", on_change=set_open, args=(room,))
        for learner in learners:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.markdown(escape_markdown(learner.name), width=220)
                st.button(
                    "Remove",
                    key=f"class remove {learner.id}",
                    on_click=guard(classes().leave),
                    args=(learner,),
                    help="With what they handed in. They can join again by another name, as long as others may.",
                )


@guard
def set_open(room: Room) -> None:
    classes().change(room.code, enrolment_closed=not widget_value("class open"))


def draw_invitation(code: str) -> None:
    found = class_link(page_address("join", {"code": code}))
    with st.container(horizontal=True, vertical_alignment="center", key="class-invitation"):
        if found.code:
            with st.container(width=QR_WIDTH):
                draw_svg(found.code, "the address of the class as a QR code", QR_WIDTH)
        with st.container(width="stretch"):
            st.markdown(f"### {escape_markdown(found.address)}")
            if found.warning:
                st.caption(escape_markdown(found.warning))


def draw_steps(room: Room) -> None:
    change = partial(guard(classes().change), room.code)
    st.caption("Press a step to send everybody there.")
    for at, step in enumerate(room.steps):
        st.button(
            escape_markdown(f"{at + 1}. {step_name(step)}"),
            key=f"class go {at}",
            width="stretch",
            type="primary" if at == room.at else "secondary",
            on_click=guard(classes().go_to),
            args=(room.code, at),
        )
    with st.container(horizontal=True, gap="small"):
        waits = room.step.asks and not room.revealed
        st.button("Reveal", key="class reveal", type="primary", disabled=not waits, on_click=change,
                  kwargs={"at": room.at, "revealed": True})  # fmt: skip
        st.button(
            "Unlock controls" if room.locked else "Lock controls",
            key="class lock",
            on_click=change,
            kwargs={"locked": not room.locked},
        )
        st.button("Gather them" if room.free else "Let them go", key="class free", on_click=change,
                  kwargs={"free": not room.free}, help="Each goes through the steps at their own pace.")  # fmt: skip
        st.toggle("points", room.points, key="class points", on_change=set_points, args=(room,),
                  help="Each right answer counts one; the projector shows who has most.")  # fmt: skip
    with st.expander("Another step"):
        step_form(partial(add_step, room))


@st.fragment(run_every=EVERY)
def draw_everybody(code: str) -> None:
    """Draws what each page shows as a small picture, the likeliest next token beside it; each with the way there."""
    named = st.toggle("names", key=NAMES)
    try:
        shown = [one for one in classes().pages(code) if one[0].is_here]
    except Unreachable as error:
        return draw_unreachable(error)
    if not shown:
        st.caption("Nobody’s page is known yet.")
    st.html(PIXELS)
    with st.container(horizontal=True, gap="small", key="class-everybody"):
        for learner, page, link, look in shown:
            if entry := entry_of(page):
                draw_page(learner.name if named else "", entry, link, look)


def draw_page(name: str, entry: Entry, link: dict[str, str], look: str) -> None:
    with st.container(border=True, width=CARD, gap="small"):
        said, picture = glance(entry, link, look)
        if picture:
            st.image(paint_pattern(picture, current_shade()), width=CARD - 40, output_format="PNG")
        if name:
            st.markdown(f"**{escape_markdown(name)}**")
        st.page_link(entry.path, label=escape_markdown(entry.title), query_params=link)
        st.caption(escape_markdown(said))


@guard
def set_points(room: Room) -> None:
    classes().change(room.code, points=bool(widget_value("class points")))


@guard
def add_step(room: Room, step: Step) -> None:
    classes().add_steps(room.code, [step])


def draw_tally(room: Room, learners: list[Learner], mine: list[Answer]) -> None:
    step = room.step
    st.markdown(f"**{escape_markdown(step_name(step))}**")
    if not step.asks and step.page != "course":
        show_page(step)
        return
    named = st.toggle("names", key=NAMES)
    if named and (missing := [one.name for one in learners if one.id not in {answer.learner for answer in mine}]):
        st.caption(escape_markdown(f"Not yet: {', '.join(missing)}"))
    if not mine:
        st.caption("Nothing is handed in yet.")
        return
    found = [one.content for one in mine if not one.content.get("elsewhere")]
    if more := len(mine) - len(found):
        st.caption(f"{count_words(more, 'answer')} about another text, model or edits than the step's: not counted.")
    draw_chart(room, found)
    if room.revealed and any(one["right"] is not None for one in found):
        right = sum(bool(one["right"]) for one in found)
        st.markdown(f"**{right} of {count_words(len(found), 'answer')}** right, each by what its own page computes.")
    draw_answers(room, learners, mine, named)


def draw_answers(room: Room, learners: list[Learner], mine: list[Answer], named: bool) -> None:
    """A line for each answer, the best first; of what was handed in a link, and the way to show it to everybody."""
    people = {one.id: one for one in learners}
    scored = kind_of(room.step).scored or any(one.content["score"] is not None for one in mine)
    order = sorted(mine, key=lambda one: -(one.content["score"] or 0.0)) if scored else list(reversed(mine))
    shown = room.revealed or room.step.at_once or kind_of(room.step).scored
    st.html(PIXELS)
    with st.container(horizontal=any(one.content.get("picture") for one in mine), gap="small", key="class-answers"):
        for answer in order[:SHOWN]:
            draw_handed_in(room, people[answer.learner], answer, named, shown)
    if len(mine) > SHOWN:
        st.caption(f"{SHOWN} of {len(mine)} are listed; the table below has all.")


def draw_handed_in(room: Room, learner: Learner, answer: Answer, named: bool, shown: bool) -> None:
    """A line, or with a picture a card."""
    content = answer.content
    pictured = bool(content.get("picture"))
    place = st.container(
        border=pictured,
        width=CARD if pictured else "stretch",
        horizontal=not pictured,
        vertical_alignment="center",
        gap="small",
    )
    with place:
        if pictured:
            st.image(paint_pattern(content["picture"], current_shade()), width=CARD - 40, output_format="PNG")
        if named:
            st.markdown(f"**{escape_markdown(learner.name)}**", width="content")
        if elsewhere := content.get("elsewhere"):
            st.markdown(f":orange-badge[{escape_markdown(elsewhere)}]", width="content")
        joint = "; it is " if content["right"] is not None else " · "
        truth = f"{joint}{content['truth']}" if shown and content["truth"] and not content["right"] else ""
        mark = ":green[✓] " if shown and content["right"] else ""
        st.markdown(mark + escape_markdown(f"{content['said'][:200]}{truth}"), width="stretch")
        with st.container(
            horizontal=True, gap="small", width="stretch" if pictured else "content", vertical_alignment="center"
        ):
            draw_showing(room, answer)


def draw_showing(room: Room, answer: Answer) -> None:
    content, key = answer.content, f"{answer.learner} {answer.step}"
    entry, link = entry_of(content["page"]), {str(name): str(said) for name, said in content["link"].items()}
    if entry is None:
        return
    st.page_link(entry.path, label="open", query_params=link)
    if answer.consent == "given":
        st.button(
            "Show to all", key=f"class show {key}", type="tertiary", on_click=show_to_all,
            args=(room, Step(content["page"], link, sentence=f"From the class: {content['said'][:SHORT]}",
                             looked=check_look(content.get("looked")))),
        )  # fmt: skip
    elif answer.consent == "":
        st.button(
            "Ask to show",
            key=f"class ask {key}",
            type="tertiary",
            on_click=guard(classes().ask_consent),
            args=(room.code, answer.learner, answer.step, "asked"),
        )
    else:
        st.caption({"asked": "asked", "refused": "said no"}[answer.consent])


@guard
def show_to_all(room: Room, step: Step) -> None:
    classes().add_steps(room.code, [step], go=True)


def draw_end(room: Room, learners: list[Learner], answers: list[Answer]) -> None:
    with st.expander("Afterwards: table, link to repeat, delete"):
        if rows := list_answers(room, learners, answers):
            st.dataframe(pd.DataFrame(rows), hide_index=True)
            formats: tuple[Format, ...] = ("csv", "parquet")
            with st.container(horizontal=True):
                for format in formats:
                    name = f"loupe-class-{room.code.lower()}.{format}"
                    st.download_button(format, partial(data_file, tabulate(rows), format), name, on_click="ignore")
        if wrong := [one for one in list_questions([one.content for one in answers]) if not one["right"]]:
            st.caption("What this class took for right in the lessons, without names:")
            st.dataframe(pd.DataFrame(wrong).drop(columns="right"), hide_index=True)
        draw_comparison(room, answers)
        st.caption("To hold this session again, with another class:")
        st.code(
            page_address("teach", {"steps": json.dumps([to_json(one) for one in room.steps])}),
            language=None,
            wrap_lines=True,
        )
        st.caption("To teach from another device, such as your phone (whoever has this link is the teacher):")
        if secret := SECRET.get().get(room.code):
            show_link(page_address("teach", {"room": room.code, "secret": secret}))
        else:
            st.button("Make a new link", key="class renew", on_click=renew_secret, args=(room.code,),
                      help="The link made before, on any device, opens no longer.")  # fmt: skip
        with st.container(horizontal=True, vertical_alignment="center"):
            st.button(
                "Close the session", key="class close", on_click=close_room, args=(room.code,), disabled=room.closed
            )
            st.toggle("I am sure", key=SURE)
            st.button("Delete names and answers", key="class delete", disabled=not widget_value(SURE),
                      on_click=delete, args=(room.code,))  # fmt: skip


def draw_comparison(room: Room, answers: list[Answer]) -> None:
    """The same questions in another session of this teacher, side by side."""
    others = [one.code for one in classes().rooms_of(visitor_id()) if one.code != room.code]
    if not others:
        return
    other = st.selectbox("compare with another session", others, None, key="class compare", width=220)
    if other is None:
        return
    try:
        there, _learners, theirs = classes().find_all(other)
    except ValueError:
        return  # deleted meanwhile
    if rows := compare_rooms({room.code: (room, answers), other: (there, theirs)}):
        st.dataframe(pd.DataFrame(rows), hide_index=True)
    else:
        st.caption("No step of the two asks the same.")


@guard
def renew_secret(code: str) -> None:
    SECRET.get()[code] = classes().renew_secret(code)


@guard
def delete(code: str) -> None:
    classes().delete(code)
    TEACH.choose("room", "")
