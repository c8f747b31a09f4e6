"""Asks for the next token, out of the likeliest ones."""

from typing import Any

import streamlit as st

from pages.controls.classes.kind import FIELD, StepKind, always
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade, grade_next, name, next_tokens, why_not_writing
from server.classes.steps import Step
from views.classes.tally import draw_choices
from views.core.markdown import escape_markdown


def draw(step: Step, given: Given | None) -> None:
    assert given is not None
    named = {id: escape_markdown(name(given, id)) for id in next_tokens(given)[1]}
    st.radio("choose", list(named), None, key=FIELD, format_func=named.__getitem__)


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    assert given is not None
    return grade_next(given, said)


KIND = StepKind(
    name="next", place=4, title="guess the next token", asks=lambda step: _("Which token comes next?"), draw=draw,
    grade=grade, sample=lambda step, given: next_tokens(given)[1][0] if given else None, is_graded=always,
    chart=draw_choices, again=False, about_run=True, covers=True, unsuited=why_not_writing,
)  # fmt: skip
