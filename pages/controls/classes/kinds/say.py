"""Asks for a text that makes the model say a word."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.controls.classes.kind import StepKind, never, no_answer
from pages.controls.state.session import widget_value
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade, probability_of, why_not_writing
from server.classes.steps import WANTED, Step

FIELD = "class wanted"


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    assert given is not None and given.checkpoint.tokenizer is not None
    likely = probability_of(given, step.wanted)
    text = given.checkpoint.tokenizer.decode(list(given.read.ids), special=False)
    return Grade(text, f"p of “{step.wanted}”: {likely:.1%}", score=likely)


def check(step: Step) -> None:
    if not step.wanted.strip():
        raise ValueError("a step that wants the model to say something needs the word; type it.")


def draw_parts() -> None:
    st.text_input("word", key=FIELD, max_chars=WANTED, width=160)


def read_parts() -> Mapping[str, Any]:
    return {"wanted": str(widget_value(FIELD, "")).strip()}


KIND = StepKind(
    name="say", place=8, title="make the model say …",
    asks=lambda step: _("Write a text in the page’s field that makes “{word}” likely.").format(word=step.wanted),
    draw=None, grade=grade, sample=no_answer, is_graded=never, chart=None, again=True, about_run=True, scored=True,
    free_text=True, unsuited=why_not_writing, check=check, draw_parts=draw_parts, read_parts=read_parts,
    detail=lambda step: f" “{step.wanted}”",
)  # fmt: skip
