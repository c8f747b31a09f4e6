"""Asks to change something on a page and hand in what stands there then."""

from typing import Any

from pages.controls.classes.kind import StepKind, never, no_answer
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade, grade_page
from server.classes.steps import Step


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    return Grade("what stands on the page") if given is None else grade_page(given, said)


KIND = StepKind(
    name="hand in", place=9, title="change something and hand it in",
    asks=lambda step: _("Change what you want on this page, and hand it in."), draw=None, grade=grade,
    sample=no_answer, is_graded=never, chart=None, again=True, about_run=False, about_page=True, at_once=False,
)  # fmt: skip
