"""Asks to choose one of several options, of which one may be right."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.controls.classes.kind import FIELD, StepKind
from pages.controls.classes.options_field import OPTIONS, options_said
from pages.controls.state.session import widget_value
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade
from server.classes.steps import Step
from views.classes.tally import draw_choices
from views.core.markdown import escape_markdown

RIGHT = "class right"


def draw(step: Step, given: Given | None) -> None:
    named = dict(enumerate(map(escape_markdown, step.options)))
    st.radio("choose", list(named), None, key=FIELD, format_func=named.__getitem__, label_visibility="collapsed")


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    if said not in range(len(step.options)):
        raise ValueError("choose one of the options.")
    truth = step.options[step.right] if is_graded(step) else ""
    return Grade(step.options[said], truth, said == step.right if truth else None)


def is_graded(step: Step) -> bool:
    return step.right >= 0


def check(step: Step) -> None:
    if len(set(step.options)) < 2 or len(set(step.options)) < len(step.options):
        raise ValueError("a choice needs two options or more, each another; write one a line.")


def draw_parts() -> None:
    with st.container(horizontal=True, vertical_alignment="top"):
        st.text_area("options, a line each", key=OPTIONS, height=140)
        named = dict(enumerate(["none of them", *options_said()]))
        st.selectbox("the right one", list(named), key=RIGHT, format_func=named.__getitem__, width=280)


def read_parts() -> Mapping[str, Any]:
    return {"options": options_said(), "right": int(widget_value(RIGHT, 0) or 0) - 1}


KIND = StepKind(
    name="choice", place=2, title="choose one of …", asks=lambda step: _("Your answer"), draw=draw, grade=grade,
    sample=lambda step, given: 0, is_graded=is_graded, chart=draw_choices, again=False, about_run=False, check=check,
    draw_parts=draw_parts, read_parts=read_parts,
)  # fmt: skip
