"""Asks for a number from 1 to 5, whose ends may have names."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.controls.classes.kind import FIELD, StepKind, never
from pages.controls.classes.options_field import OPTIONS, options_said
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade
from server.classes.steps import Step
from views.classes.tally import SCALE, draw_scale
from views.core.markdown import escape_markdown


def draw(step: Step, given: Given | None) -> None:
    st.segmented_control("choose", SCALE, key=FIELD, label_visibility="collapsed")
    if step.options:
        low, high = step.options
        st.caption(escape_markdown(f"{SCALE[0]}: {low} · {SCALE[-1]}: {high}"))


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    if said not in SCALE:
        raise ValueError(f"choose a number from {SCALE[0]} to {SCALE[-1]}.")
    return Grade(str(said), number=float(said))


def check(step: Step) -> None:
    if len(step.options) not in (0, 2):
        raise ValueError(f"the ends of a scale have two names or none, got {len(step.options)}; write one a line.")


def draw_parts() -> None:
    st.text_area("names of its two ends, a line each (may be empty)", key=OPTIONS, height=80)


def read_parts() -> Mapping[str, Any]:
    return {"options": options_said()}


KIND = StepKind(
    name="scale", place=3, title="rate from 1 to 5", asks=lambda step: _("Your answer"), draw=draw, grade=grade,
    sample=lambda step, given: SCALE[0], is_graded=never, chart=lambda found, shown, shade: draw_scale(found, shade),
    again=False, about_run=False, at_once=False, check=check, draw_parts=draw_parts, read_parts=read_parts,
)  # fmt: skip
