"""Asks how likely the likeliest next token is."""

from typing import Any

from pages.controls.classes.kind import StepKind, always, number_field
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade, estimate, next_tokens, why_not_writing
from server.classes.steps import Step
from views.classes.tally import draw_estimates

TOLERANCE = 0.05  # of 1


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    assert given is not None
    p, number = float(next_tokens(given)[0].max()), float(said)
    if not 0 <= number <= 1:
        raise ValueError(f"a probability is from 0 to 1, got {number:g}; type it so, 0.5 for one half.")
    return estimate(number, p, TOLERANCE, f"{number:.0%}", f"{p:.1%}")


KIND = StepKind(
    name="share", place=5, title="estimate how likely it is",
    asks=lambda step: _("How likely is the likeliest next token? (0 to 1)"), draw=number_field(1.0), grade=grade,
    sample=lambda step, given: 0.0, is_graded=always, chart=draw_estimates, again=False, about_run=True, covers=True,
    unsuited=why_not_writing,
)  # fmt: skip
