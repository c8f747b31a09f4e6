"""Looks at a page, and asks nothing."""

from pages.controls.classes.kind import StepKind, never, no_answer

KIND = StepKind(
    name="look", place=0, title="look at this", asks=lambda step: "", draw=None, grade=None, sample=no_answer,
    is_graded=never, chart=None, again=False, about_run=False, at_once=False,
)  # fmt: skip
