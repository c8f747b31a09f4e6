"""What stands above every page of a learner: the step, the answer they hand in, and what was right."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, LiteralString

import streamlit as st

from engine.classes.grading import Given, Grade, grade, grade_page, option_name, options, why_unsuited
from engine.classes.steps import ESTIMATES, Kind, Pattern, Step
from engine.classes.store import Answer, Learner, Room, Unreachable
from engine.edits import AttentionTemperature
from engine.plurals import count_words
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from engine.training.runs import runs
from pages.controls.classes.who import JOINED, classes, draw_trouble, entry_of, guard, joined, news, wait_for_database
from pages.controls.learn.predict import QUESTIONS
from pages.controls.learn.words import translate as _
from pages.controls.model_input.model_input import find_carried, looked_at, reading
from pages.controls.share.links import address_now
from pages.controls.state.session import Remembered, widget_value
from pages.controls.train.parameters import TRAIN
from pages.controls.what_if.experiment import current
from views.core.component import PAGE
from views.core.markdown import escape_markdown

FIELD = "class answer"
REFUSED = Remembered("class answer refused", str)
# Pictures and charts of a page, which show what is to be guessed.
PICTURES = ".st-key-walkthrough, .st-key-attention, .st-key-generate-view, .st-key-compare, .st-key-what-if-effects"
COVERED = f":is({PICTURES}) [data-testid^=stBidiComponent], [data-testid=stVegaLiteChart] {{ filter: blur(14px); "
COVERED += "pointer-events: none }"
WITH_A_RUN = "walkthrough", "attention"
GUESSES: tuple[Kind, ...] = ("next", "share", "loss")
FREED = "[data-testid=stMain] * { pointer-events: none } .st-key-class-step * { pointer-events: auto }"


def draw_step() -> None:
    """Draws it, of a visitor who is in a class."""
    draw_trouble()
    try:
        if joined() is None:
            return
    except Unreachable:
        pass  # it is said in the class's place
    with st.container(key="class-step", border=True):
        follow_class()


@st.fragment
def follow_class() -> None:
    try:
        found = joined()
    except Unreachable as error:
        return wait_for_database(JOINED.get(), error)
    if found is None:
        st.rerun()  # the class is over
    room, learner = found
    step, entry = room.step, entry_of(room.step.page)
    if entry:  # unseen: what the browser presses when the class comes to another step, so that it must know it first
        with st.container(key="class-way"):
            st.page_link(entry.path, label="step", query_params=dict(step.query))
    guessing = False
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        place = _("step {number} of {count}").format(number=room.at + 1, count=len(room.steps))
        st.markdown(f"**{escape_markdown(learner.name)}** · {place}", width="content")
        st.markdown(escape_markdown(step.sentence), width="stretch")
        if step.asks:
            guessing = draw_answer(room, learner)
        if entry and widget_value(PAGE) != step.page:
            icon = ":material/arrow_forward:"
            st.page_link(entry.path, label=_("to the step"), icon=icon, query_params=dict(step.query))
        st.button(_("Leave"), key="class leave", type="tertiary", on_click=leave, args=(learner,))
        news(
            {
                "room": room.code, "version": str(room.version), "all": False,
                "follow": "" if room.free else f"{room.at}@{room.entered}",
                "until": room.entered + step.seconds if step.seconds else 0,
            },
            key="class news",
        )  # fmt: skip
    if learner.consent == "asked":
        ask_consent(learner)
    covered = guessing and step.kind in GUESSES and widget_value(PAGE) == step.page
    css = (FREED if room.locked else "") + (COVERED if covered else "")
    st.html(f"<style>.st-key-class-way {{ display: none }} {css}</style>")


def draw_answer(room: Room, learner: Learner) -> bool:
    """The field of the answer; what was handed in, and once it may be seen, what is right. Tells whether that is still
    to be guessed."""
    step = room.step
    mine = [one for one in classes().answers(room.code) if (one.learner, one.step) == (learner.id, room.at)]
    again = step.kind in ("say", "hand in", "run", "words")
    if mine:
        tell_answer(step, mine[0], room.revealed)
    seen = room.revealed or step.at_once and bool(mine)
    if room.revealed and not step.at_once or mine and not again:
        return not seen
    label: LiteralString = _("Again") if mine else _("Answer")
    panel = st.popover(label, key=f"class open {room.at}", on_change="rerun", type="primary")
    if not panel.open:
        return not seen
    with panel:
        st.markdown(f"**{escape_markdown(asked_of(step))}**")
        try:
            given = given_now(step.kind)
            draw_field(step, given)
        except ValueError as error:
            st.warning(escape_markdown(error))
            return not seen
        st.button(_("Hand in"), key="class hand in", type="primary", on_click=hand_in, args=(room, learner, again))
        if REFUSED.get():
            st.warning(escape_markdown(REFUSED.get()))
            REFUSED.set("")
    return not seen


def asked_of(step: Step) -> str:
    """What is asked of a learner, in the language of the lessons."""
    patterns: dict[Pattern, str] = {
        "previous": _("the token just before"), "first": _("the first token"),
        "induction": _("the token behind an earlier one like it"), "duplicate": _("an earlier token like it"),
    }  # fmt: skip
    asks: dict[Kind, str] = {
        "next": _("Which token comes next?"), "share": _("How likely is the likeliest next token? (0 to 1)"),
        "loss": _("What is the loss of this text? (nats a token)"),
        "head": _("Which head looks most at {pattern}?").format(pattern=patterns[step.pattern]),
        "say": _("Write a text in the page’s field that makes “{word}” likely.").format(word=step.wanted),
        "hand in": _("Change what you want on this page, and hand it in."),
        "run": _("Train a model, and hand in the run."),
    }  # fmt: skip
    return asks.get(step.kind, _("Your answer"))


def draw_field(step: Step, given: Given | None) -> None:
    if step.kind == "words":
        st.text_area("answer", key=FIELD, max_chars=1_000, label_visibility="collapsed")
    elif step.kind in ESTIMATES:
        st.number_input("number", 0.0, 1.0 if step.kind == "share" else 100.0, None, key=FIELD, step=0.01)
    elif given is not None and (offered := options(step, given)):
        def named(option: Any) -> str:
            return escape_markdown(option_name(step, given, option))

        if step.kind == "next":
            st.radio("choose", offered, None, key=FIELD, format_func=named)
        else:
            st.selectbox("choose", offered, None, key=FIELD, format_func=named)
    else:
        st.caption(_("What stands on the page now is handed in. You may do it again."))


def given_now(kind: Kind) -> Given | None:
    """What the page shows, for a question about a run. Raises ValueError, with a sentence, where it shows none."""
    if kind in ("look", "words", "run") or kind == "hand in" and widget_value(PAGE) not in WITH_A_RUN:
        return None
    name, _fields = looked_at()
    checkpoint = library.checkpoint(name)
    if why := why_unsuited(kind, checkpoint):
        raise ValueError(why)
    found = reading(checkpoint)
    if not isinstance(found.read, Encoding) or not len(found.read):
        raise ValueError("This question is about a text; type one on the page.")
    temperature = find_carried().values.get("attention", 1.0)
    edits = [AttentionTemperature(temperature)] if temperature != 1 else []
    trace = library.traces.trace(name, found.read, [*edits, *(one.edit for one in current().entries if one.on)])
    return Given(checkpoint, found.read, trace)


def hand_in(room: Room, learner: Learner, again: bool) -> None:
    """Grades what the field and the page hold, and keeps it with a link to the page."""
    said = widget_value(FIELD)
    try:
        if room.step.kind == "run":
            result = grade_run()
        elif said is None and room.step.kind not in ("say", "hand in"):
            raise ValueError("Nothing is chosen yet; answer first.")
        else:
            given = given_now(room.step.kind)
            plain = "what stands on the page" if said is None else str(said)
            if given and room.step.kind == "hand in":
                result = grade_page(given, *(read_index(address_now().get(name, "")) for name in ("layer", "head")))
            else:
                result = grade(room.step, given, said) if given else Grade(plain)
        content = {**asdict(result), "page": widget_value(PAGE, ""), "link": address_now()}
        classes().hand_in(learner, room.at, content, again)
    except ValueError as error:
        REFUSED.set(str(error)[:1].upper() + str(error)[1:])


def read_index(said: str) -> int | None:
    return int(said) if said.isascii() and said.isdigit() and len(said) < 4 else None


def grade_run() -> Grade:
    """The run that the page Train shows, and its held-out loss."""
    name = TRAIN.now("run")
    loss = next((one.held_out_loss for one in runs() if one.name == name), None)
    if loss is None:
        raise ValueError("no run is shown; open one on the page Train, once it has a held-out loss.")
    return Grade(name, f"held-out loss {loss:.3f}", score=-loss)


def tell_answer(step: Step, mine: Answer, revealed: bool) -> None:
    said, found = escape_markdown(str(mine.content["said"])[:80]), mine.content
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


def ask_consent(learner: Learner) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(_("Your teacher asks to show to the class what you handed in."), width="content")
        for label, consent in ((_("Show it"), "given"), (_("No"), "refused")):
            st.button(
                label, key=f"class consent {consent}", on_click=guard(classes().ask_consent),
                args=(learner.room, learner.id, consent),
            )  # fmt: skip


def draw_own(room: Room, learner: Learner) -> None:
    """What a learner handed in, each with the way back to the page as it was then."""
    said = _("You are in the class **{code}** as **{name}**.")
    st.markdown(said.format(code=escape_markdown(room.code), name=escape_markdown(learner.name)))
    for answer in (one for one in classes().answers(room.code) if one.learner == learner.id):
        step, entry = room.steps[answer.step], entry_of(answer.content["page"])
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(escape_markdown(f"{answer.step + 1}. {step.sentence}"), width="content")
            tell_answer(step, answer, room.revealed or answer.step != room.at)
            if entry:
                link = {str(name): str(text) for name, text in answer.content["link"].items()}
                st.page_link(entry.path, label=_("open"), icon=":material/open_in_new:", query_params=link)


@guard
def leave(learner: Learner) -> None:
    """Takes a learner out, with all that they handed in."""
    classes().leave(learner)
    JOINED.set("")


def note_lesson() -> None:
    """Hands in how far a learner is in the questions of a lesson, where the class is at one."""
    if (found := joined()) is None or found[0].step.page != "course" or found[0].step.asks:
        return
    room, learner = found
    answered = {key: kept.right for key, kept in QUESTIONS.get().items() if kept.about is not None}
    if not answered:
        return
    right = sum(answered.values())
    said = f"{right} of {count_words(len(answered), 'question')} right"
    mine = [one for one in classes().answers(room.code) if (one.learner, one.step) == (learner.id, room.at)]
    if not mine or mine[0].content["said"] != said:
        result = Grade(said, score=right / len(answered))
        content = {**asdict(result), "page": "course", "link": address_now()}
        try:
            classes().hand_in(learner, room.at, content, again=True)
        except ValueError:
            return  # it is handed in with the next answer, or the class went on
