"""Asks for the loss of a text."""

from typing import Any

from engine.analysis.surprise import surprise
from pages.controls.classes.kind import StepKind, always, number_field
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade, estimate, why_not_writing
from server.classes.steps import Step
from views.classes.tally import draw_estimates

TOLERANCE = 0.25  # nats a token


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    assert given is not None
    found, number = surprise(given.checkpoint, given.read.ids).mean, float(said)
    return estimate(number, found, TOLERANCE, f"{number:.2f}", f"{found:.3f} nats a token")


KIND = StepKind(
    name="loss", place=6, title="estimate the loss of the text",
    asks=lambda step: _("What is the loss of this text? (nats a token)"), draw=number_field(100.0), grade=grade,
    sample=lambda step, given: 0.0, is_graded=always, chart=draw_estimates, again=False, about_run=True, covers=True,
    unsuited=why_not_writing,
)  # fmt: skip
