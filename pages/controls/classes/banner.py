"""What stands above every page of a learner: the step, the answer they hand in, and what was right."""

from __future__ import annotations

from typing import LiteralString

import streamlit as st

from pages.controls.classes.answering import answer_now, differs, given_now, truth_of
from pages.controls.classes.kind import FIELD, kind_of, make_ready
from pages.controls.classes.who import (
    JOINED,
    OVER,
    classes,
    draw_trouble,
    entry_of,
    find_joined_class,
    guard,
    news,
    visitor_id,
    wait_for_database,
)
from pages.controls.state.session import SessionValue, widget_value
from pages.controls.words import translate as _
from pages.controls.words import translate_count as _n
from server.classes.steps import Step
from server.classes.store import Answer, Learner, Room, Unreachable
from views.core.component import PAGE
from views.core.markdown import escape_markdown

REFUSED = SessionValue("class answer refused", str)
OWN = SessionValue[int | None]("step at which a learner is by themselves", lambda: None)
# Pictures and charts of a page, which show what is to be guessed.
PICTURES = ".st-key-walkthrough, .st-key-attention, .st-key-generate-view, .st-key-compare, .st-key-what-if-effects"
COVERED = f":is({PICTURES}) [data-testid^=stBidiComponent], [data-testid=stVegaLiteChart] {{ filter: blur(14px); "
COVERED += "pointer-events: none }"
FREED = "[data-testid=stMain] * { pointer-events: none } .st-key-class-step * { pointer-events: auto }"


def draw_step() -> None:
    """Draws it, of a visitor who is in a class."""
    draw_trouble()
    try:
        if find_joined_class() is None:
            return draw_over() if OVER.get() else None
    except Unreachable:
        pass  # it is said in the class's place
    with st.container(key="class-step", border=True):
        follow_class()


def draw_over() -> None:
    """Says where somebody finds what they handed in to a class that is over, until they have read it."""
    if widget_value(PAGE) == "join":
        return  # where they stand
    with st.container(key="class-over", border=True, horizontal=True, vertical_alignment="center", gap="small"):
        over = _("The class {code} is over. Your answers, and what was right, stay on the page Join a class.")
        st.markdown(over.format(code=escape_markdown(OVER.get())), width="stretch")
        if entry := entry_of("join"):
            st.page_link(entry.path, label=_("my answers"), icon=":material/arrow_forward:")
        st.button(_("Close"), key="class over", type="tertiary", on_click=OVER.set, args=("",))


@st.fragment
def follow_class() -> None:
    try:
        found = find_joined_class()
    except Unreachable as error:
        return wait_for_database(JOINED.get(), error)
    if found is None:
        st.rerun()  # the class is over
    whole, learner = found
    room = whole.seen_from(own_step(whole))
    step, entry = room.step, entry_of(room.step.page)
    make_ready(step)
    if entry:  # unseen: what the browser presses when the class comes to another step, so that it must know it first
        with st.container(key="class-way"):
            st.page_link(entry.path, label="step", query_params=dict(step.query))
    guessing, mine = False, [one for one in classes().answers(room.code) if one.learner == learner.id]
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        place = _("step {number} of {count}").format(number=room.at + 1, count=len(room.steps))
        points = sum(map(room.counts, mine))
        scored = _n("{n} point", "{n} points", points).format(n=points)
        said = [f"**{escape_markdown(learner.name)}**", place, *([scored] if room.points else [])]
        st.markdown(" · ".join(said), width="content")
        if room.free:
            draw_turns(room)
        st.markdown(escape_markdown(step.sentence), width="stretch")
        if step.asks:
            guessing = draw_answer(room, learner, [one for one in mine if one.step == room.at])
        if entry and widget_value(PAGE) != step.page:
            icon = ":material/arrow_forward:"
            st.page_link(entry.path, label=_("to the step"), icon=icon, query_params=dict(step.query))
        with st.popover(_("Leave"), type="tertiary"):
            st.markdown(_("Whoever leaves takes along all that they handed in."))
            st.button(_("Leave the class"), key="class leave", on_click=leave, args=(learner,))
        news(
            {
                "room": room.code,
                "version": str(room.version),
                "all": False,
                "follow": f"{room.at}@{room.entered}" if not room.free else "" if OWN.get() is None else f"{room.at}",
                "until": room.entered + step.seconds if step.seconds else 0,
                "look": step.looked,
            },
            key="class news",
        )
    for asked in (one for one in mine if one.consent == "asked"):
        ask_consent(room, asked)
    covered = guessing and kind_of(step).covers and widget_value(PAGE) == step.page
    css = (FREED if room.locked else "") + (COVERED if covered else "")
    st.html(f"<style>.st-key-class-way {{ display: none }} {css}</style>")


def own_step(room: Room) -> int:
    """The number of the step that this learner is at. Once the class goes together it is forgotten where they were."""
    own = OWN.get()
    if not room.free:
        OWN.set(None)
    return room.at if own is None or not room.free or own >= len(room.steps) else own


def draw_turns(room: Room) -> None:
    """Leads who goes at their own pace to the step before and the next one."""
    for by, way, said in ((-1, "back", _("The step before")), (1, "forward", _("The next step"))):
        st.button(
            "", key=f"class {way}", type="tertiary", icon=f":material/arrow_{way}:", help=said, on_click=OWN.set,
            args=(room.at + by,), disabled=not 0 <= room.at + by < len(room.steps),
        )  # fmt: skip


def draw_answer(room: Room, learner: Learner, mine: list[Answer]) -> bool:
    """The field of the answer; what was handed in, and once it may be seen, what is right. Tells whether that is still
    to be guessed."""
    step = room.step
    kind = kind_of(step)
    if mine:
        tell_answer(step, mine[0], room.revealed)
    elif room.revealed and (truth := truth_of(step)):
        st.markdown(f":blue-badge[{_('right: {truth}').format(truth=escape_markdown(truth))}]", width="content")
    seen = room.revealed or step.at_once and bool(mine)
    if room.revealed and not step.at_once or mine and not kind.again:
        return not seen
    label: LiteralString = _("Again") if mine else _("Answer")
    panel = st.popover(label, key=f"class open {room.at}", on_change="rerun", type="primary")
    if not panel.open:
        return not seen
    with panel:
        st.markdown(f"**{escape_markdown(kind.asks(step))}**")
        try:
            given = given_now(kind)
            if kind.draw is None:
                st.caption(_("What stands on the page now is handed in. You may do it again."))
            else:
                kind.draw(step, given)
            warn_elsewhere(step)
        except ValueError as error:
            st.warning(escape_markdown(error))
            return not seen
        st.button(_("Hand in"), key="class hand in", type="primary", on_click=hand_in, args=(room, learner))
        if REFUSED.get():
            st.warning(escape_markdown(REFUSED.get()))
            REFUSED.set("")
    return not seen


def name_elsewhere(said: str) -> str:
    """Names what an answer is about and the step is not, in the language of the lessons."""
    known = {"another model": _("another model"), "other edits": _("other edits"), "another text": _("another text")}
    return known.get(said, said)


def warn_elsewhere(step: Step) -> None:
    """Says that an answer would not count, and leads back to what the step is about."""
    if elsewhere := differs(step):
        warning = _("This page shows {what} than the step, and what you hand in now does not count.")
        st.caption(f":orange[{warning.format(what=name_elsewhere(elsewhere))}]")
        if entry := entry_of(step.page):
            icon = ":material/arrow_forward:"
            st.page_link(entry.path, label=_("to the step"), icon=icon, query_params=dict(step.query))


def hand_in(room: Room, learner: Learner) -> None:
    """Keeps the answer that the field and the page hold."""
    look = classes().look_of(room.code, visitor_id())
    try:
        answer = answer_now(room.step, widget_value(FIELD), look)
        classes().hand_in(learner, room.at, answer, kind_of(room.step).again)
    except ValueError as error:
        REFUSED.set(str(error)[:1].upper() + str(error)[1:])


def tell_answer(step: Step, mine: Answer, revealed: bool) -> None:
    said, found = escape_markdown(str(mine.content["said"])[:80]), mine.content
    if elsewhere := found.get("elsewhere"):
        marked = _("handed in: {said}; it is about {what} and does not count")
        st.markdown(marked.format(said=said, what=name_elsewhere(elsewhere)), width="content")
        return
    if not (step.at_once or revealed) or not found["truth"]:
        st.markdown(_("handed in: {said}").format(said=said), width="content")
        return
    truth, right, wrong = escape_markdown(found["truth"]), _("right: {truth}"), _("{said}; it is {truth}")
    if found["right"] is None:
        st.markdown(f":blue-badge[{said}: {truth}]", width="content")
    elif found["right"]:
        st.markdown(f":green-badge[{right.format(truth=truth)}]", width="content")
    else:
        st.markdown(f":orange-badge[{wrong.format(said=said, truth=truth)}]", width="content")


def ask_consent(room: Room, answer: Answer) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        asks = _("Your teacher asks to show this to the class: {said}")
        st.markdown(asks.format(said=escape_markdown(str(answer.content["said"])[:80])), width="content")
        for label, consent in ((_("Show it"), "given"), (_("No"), "refused")):
            st.button(
                label,
                key=f"class consent {consent} {answer.step}",
                on_click=guard(classes().ask_consent),
                args=(room.code, answer.learner, answer.step, consent),
            )


def draw_own(room: Room, learner: Learner) -> None:
    """Draws the answers that a learner handed in, each with the way back to the page as it was then."""
    said = _("You are in the class **{code}** as **{name}**.")
    if room.closed:
        said = _("You were in the class **{code}** as **{name}**.")
    st.markdown(said.format(code=escape_markdown(room.code), name=escape_markdown(learner.name)))
    mine = [one for one in classes().answers(room.code) if one.learner == learner.id]
    for answer in (one for one in mine if one.step < len(room.steps)):  # one may be to a step that was added since
        step, entry = room.steps[answer.step], entry_of(answer.content["page"])
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(escape_markdown(f"{answer.step + 1}. {step.sentence}"), width="content")
            passed = not room.free and answer.step != room.at
            tell_answer(step, answer, room.closed or passed or answer.step in room.shown)
            if entry:
                link = {str(name): str(text) for name, text in answer.content["link"].items()}
                st.page_link(entry.path, label=_("open"), icon=":material/open_in_new:", query_params=link)


@guard
def leave(learner: Learner) -> None:
    """Takes a learner out, with all that they handed in."""
    classes().leave(learner)
    JOINED.set("")
