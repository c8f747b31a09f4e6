"""Asks to train a model and hand in the run."""

from typing import Any

from engine.training.run.runs import runs
from pages.controls.classes.kind import StepKind, never, no_answer
from pages.controls.train.parameters import TRAIN
from pages.controls.words import translate as _
from server.classes.grading import Given, Grade
from server.classes.steps import Step


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    """The run that the page Train shows, and its held-out loss."""
    name = TRAIN.now("run")
    loss = next((one.measures.held_out_loss for one in runs() if one.name == name), None)
    if loss is None:
        raise ValueError("no run is shown; open one on the page Train, once it has a held-out loss.")
    return Grade(name, f"held-out loss {loss:.3f}", score=-loss)


KIND = StepKind(
    name="run", place=10, title="train, and hand in the run",
    asks=lambda step: _("Train a model, and hand in the run."), draw=None, grade=grade, sample=no_answer,
    is_graded=never, chart=None, again=True, about_run=False, scored=True, at_once=False, pages=("train",), only=True,
)  # fmt: skip
