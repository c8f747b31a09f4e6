"""Asks for words, of which those of a whole class are a cloud."""

import streamlit as st

from pages.controls.classes.kind import FIELD, StepKind, never, no_answer
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade
from server.classes.steps import Step
from views.classes.tally import draw_words


def draw(step: Step, given: Given | None) -> None:
    st.text_area("answer", key=FIELD, max_chars=1_000, label_visibility="collapsed")


KIND = StepKind(
    name="words", place=1, title="answer in words", asks=lambda step: _("Your answer"), draw=draw,
    grade=lambda step, given, said: Grade(str(said)), sample=no_answer, is_graded=never,
    chart=lambda found, shown, shade: draw_words(found, shade), again=True, about_run=False,
)  # fmt: skip
