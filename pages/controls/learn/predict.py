"""Predict, then reveal: a question that a reader answers before the page shows what the model computed.

    if choose("Which token does “she” attend to most?", pieces, answer=int(row.argmax()), key="most attended"):
        bars(row, pieces, key="the row")

Each returns True once it is answered, or shown without an answer. Another question, or another answer to it (the text
or the model has changed), is asked anew. `why` gives the reason why what was said is wrong or right: a sentence made of
what the model computed. `again` sets other numbers, for a second try, whose answer is covered until it is given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import streamlit as st

from pages.controls.figures import PICKED, picked_place
from pages.controls.state.session import SessionValue, set_widget
from pages.controls.words import numeral
from pages.controls.words import translate as _
from views.core.function_code import call_lines, source_of
from views.core.markdown import escape_markdown

Place = tuple[int, ...]
TOGETHER = " + "  # between options that are right together
NAMED = 3  # of the right places of a picture, where it is shown
Why = Callable[[Any], str]
Again = Callable[[], None]


@dataclass
class PredictionRecord:
    """Record of a question in a session: what it was about as it was answered, what was said first (None: it was
    shown without), whether that was right, whether one of its answers was seen, and whether the reader tries again; in
    words what was said, and `why` it is wrong."""

    about: Hashable = None
    first_answer: Any = None
    right: bool = False
    seen: bool = False
    again: bool = False
    words: str = ""
    why: str = ""

    @property
    def question_text(self) -> str:
        """The question in words, once it is answered."""
        return str(self.about[0]) if isinstance(self.about, tuple) else ""

    def answer(self, about: Hashable, said: Any) -> None:
        self.about, self.first_answer, self.again = about, said, False

    def try_again(self, change: Again) -> None:
        self.about, self.again = None, True
        change()


QUESTIONS = SessionValue[defaultdict[str, PredictionRecord]](
    "questions", lambda: defaultdict(PredictionRecord)
)  # by their keys
ASKED = SessionValue[set[str]]("questions of the page", set)  # their keys, of a page that empties it first
OPEN = SessionValue("questions hide nothing", bool)  # while a page shows what its question would hide
FRONT = SessionValue[Any]("front of the page", lambda: None)  # a container for the first question of the page, if any


def choose(
    question: LiteralString,
    options: Sequence[str],
    answer: int,
    *,
    key: str,
    why: Why | None = None,
    again: Again | None = None,
) -> bool:
    """Asks for one of several `options`; `answer` is the index of the right one."""
    if not 0 <= answer < len(options):
        raise ValueError(f"answer must be in 0..{len(options) - 1}, got {answer}.")

    def ask() -> int | None:
        return st.pills(
            question,
            range(len(options)),
            key=f"{key} said",
            format_func=lambda at: escape_markdown(options[at]),
            label_visibility="collapsed",
        )

    right, name = (lambda said: said == answer), (lambda said: options[said])
    return reveal(question, ask, right, name, answer, options[answer], key, why, again)


def choose_all(
    question: LiteralString,
    options: Sequence[str],
    answers: Collection[int],
    *,
    key: str,
    why: Why | None = None,
    again: Again | None = None,
) -> bool:
    """Asks for all of several `options` that are right; `answers` are their indices."""

    def ask() -> list[int] | None:
        at = range(len(options))
        said = st.pills(
            question,
            at,
            selection_mode="multi",
            key=f"{key} said",
            format_func=lambda one: escape_markdown(options[one]),
            label_visibility="collapsed",
        )
        return sorted(said) or None

    def name(said: Sequence[int]) -> str:
        return TOGETHER.join(options[at] for at in said)

    right = sorted(answers)
    return reveal(question, ask, lambda said: said == right, name, right, name(right), key, why, again, nothing=[])


def estimate(
    question: LiteralString,
    answer: float,
    tolerance: float,
    *,
    key: str,
    unit: str = "",
    why: Why | None = None,
    again: Again | None = None,
) -> bool:
    """A number, right within `tolerance`."""

    def ask() -> float | None:
        return st.number_input(
            question,
            value=None,
            key=f"{key} said",
            width=180,
            placeholder=unit or _("a number"),
            label_visibility="collapsed",
        )

    def name(value: float) -> str:
        return f"{numeral(value, '.4g')}{f' {unit}' if unit else ''}"

    shown = _("{value} (± {tolerance:g} is accepted)").format(value=name(answer), tolerance=tolerance)
    return reveal(question, ask, lambda said: abs(said - answer) <= tolerance, name, answer, shown, key, why, again)


def point(
    question: LiteralString,
    shape: Sequence[int],
    answers: Collection[Place | int],
    *,
    key: str,
    name: Callable[[Any], str] = str,
    why: Why | None = None,
    again: Again | None = None,
) -> bool:
    """A place in the picture f"{key} picture" of that `shape` (`pages.controls.figures`), by its indices, or by its one
    index; any of `answers` is right. A picture of another shape is asked about anew: the place that was said may not be
    in it."""
    place = picked_place(f"{key} picture", shape)
    picked = None if place is None or len(place) != len(shape) else place[0] if len(shape) == 1 else tuple(place)

    def ask() -> Any:
        chosen = _("Chosen: {place}").format(place=escape_markdown(name(picked))) if picked is not None else ""
        st.caption(chosen or _("Click in the picture."))
        return picked

    def turn() -> None:
        PICKED.get().pop(f"{key} picture", None)
        if again:
            again()

    ordered = sorted(answers)
    names = list(dict.fromkeys(map(name, ordered)))  # those of several places may be the same
    shown = _(" or ").join(names[:NAMED]) + " …" * (len(names) > NAMED)
    return reveal(
        question, ask, lambda said: said in answers, name, ordered[0], shown, key, why, again and turn, tuple(shape)
    )


def is_answered(key: str) -> bool:
    """Tells whether the question `key` has been answered, which may be open to see without that."""
    return QUESTIONS.get()[key].about is not None


def is_found(key: str) -> bool:
    """Tells whether the question `key` was answered rightly: neither wrongly, nor shown without an answer."""
    return QUESTIONS.get()[key].right


def reveal(
    question: LiteralString,
    ask: Callable[[], Any],
    is_right: Callable[[Any], bool],
    name: Callable[[Any], str],
    correct: Any,
    answer: str,
    key: str,
    why: Why | None,
    again: Again | None,
    shape: Place = (),
    nothing: Any = None,
) -> bool:
    """Draws the question, and once it is answered what was right; what was said first stays. `nothing` is the value of
    a widget in which nothing is said."""
    about: Hashable = (question, answer, shape)
    kept = QUESTIONS.get()[key]
    ASKED.get().add(key)
    if kept.about not in (None, about):
        kept.about, kept.right = None, False
        set_widget(f"{key} said", nothing)
    front = FRONT.get() or st.container()
    FRONT.set(None)
    asked = f"**{escape_markdown(question)}**"
    with front, st.container(border=kept.about is None, key=f"{key} question"):
        if kept.about is None:
            st.markdown(asked)
            said = ask()
            with st.container(horizontal=True, gap="small"):
                st.button(
                    _("Check"),
                    key=f"{key} check",
                    type="primary",
                    disabled=said is None,
                    on_click=kept.answer,
                    args=(about, said),
                )
                st.button(_("Show me"), key=f"{key} show", type="tertiary", on_click=kept.answer, args=(about, None))
            return not kept.again and (OPEN.get() or kept.seen)
        said, kept.seen = kept.first_answer, True  # who has seen one answer may change the input and look on
        kept.right = said is not None and bool(is_right(said))
        kept.words = name(said) if said is not None else ""
        kept.why = why(said) if why and said is not None and not kept.right else ""
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"{key} answer"):
            if said is None:
                shown = _("It is {answer}.").format(answer=escape_markdown(answer))
                reason = escape_markdown(why(correct)) if why else ""
                st.info(" ".join(filter(None, (asked, shown, reason))))
            elif kept.right:
                shown = _("Right: {answer}.").format(answer=escape_markdown(answer))
                st.success(f"{asked} {shown}")
            else:
                wrong = _("You said {said}; it is {answer}.").format(
                    said=escape_markdown(name(said)), answer=escape_markdown(answer)
                )
                st.warning(" ".join(filter(None, (asked, wrong, escape_markdown(kept.why)))))
            if again and not kept.right:
                st.button(
                    _("Try another one"),
                    key=f"{key} again",
                    type="tertiary",
                    icon=":material/replay:",
                    on_click=kept.try_again,
                    args=(again,),
                )
    return True


def show_code(function: Callable[..., Any], *, key: str, **arguments: Any) -> None:
    """Behind a button: how the page calls a function of the engine with these arguments, and the function itself."""
    panel = st.popover(_("Show the code"), key=key, on_change="rerun", icon=":material/code:")
    if not panel.open:
        return
    with panel:
        try:
            st.code(call_lines(function, arguments), language="python", wrap_lines=True)
        except ValueError as error:
            st.caption(escape_markdown(error))
        st.caption(escape_markdown(f"{function.__name__} in {function.__module__}"))
        st.code(source_of(function), language="python", wrap_lines=True)
