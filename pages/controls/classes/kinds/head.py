"""Asks for the head that looks most so."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from engine.checkpoints import Checkpoint
from pages.controls.classes.kind import FIELD, StepKind, always
from pages.controls.state.session import widget_value
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade, grade_head, head_name, heads
from server.classes.steps import PATTERNS, Pattern, Step
from views.classes.tally import draw_choices

PATTERN = "class pattern"


def why_unsuited(checkpoint: Checkpoint) -> str:
    config = checkpoint.model.config
    if config.encoder or config.attention.heads * config.layers < 2:
        return "this question is about a model of one stack with several heads; choose one, such as everyday."
    return ""


def asks(step: Step) -> str:
    patterns: dict[Pattern, str] = {
        "previous": _("the token just before"),
        "first": _("the first token"),
        "induction": _("the token behind an earlier one like it"),
        "duplicate": _("an earlier token like it"),
    }
    return _("Which head looks most at {pattern}?").format(pattern=patterns[step.pattern])


def draw(step: Step, given: Given | None) -> None:
    assert given is not None
    st.selectbox("choose", heads(given), None, key=FIELD, format_func=head_name)


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    assert given is not None
    return grade_head(given, step.pattern, tuple(said))


def draw_parts() -> None:
    st.selectbox("looks at", list(PATTERNS), key=PATTERN, width=280, format_func=PATTERNS.__getitem__)


def read_parts() -> Mapping[str, Any]:
    return {"pattern": widget_value(PATTERN, "previous")}


KIND = StepKind(
    name="head", place=7, title="find a head", asks=asks, draw=draw, grade=grade, sample=lambda step, given: (0, 0),
    is_graded=always, chart=draw_choices, again=False, about_run=True, unsuited=why_unsuited,
    draw_parts=draw_parts, read_parts=read_parts,
    detail=lambda step: f": {PATTERNS[step.pattern]}",
)  # fmt: skip
