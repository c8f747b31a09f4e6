"""What a kind of step is: how it is made, asked, answered, graded and counted. Each is a file of kinds/."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.collect import collect
from server.classes.grading import Given, Grade
from server.classes.steps import Step
from views.charts.template import AltairChart
from views.classes.tally import Content
from views.core.markdown import escape_markdown
from views.core.theme import Shade

FIELD = "class answer"  # the key of the field of an answer
Chart = Callable[[Sequence[Content], bool, Shade], AltairChart]  # of answers, and whether what is right is shown


def suits(checkpoint: Checkpoint) -> str:
    """Default of a kind that can be asked about every model."""
    return ""


def accept(step: Step) -> None:
    """Default of a kind that accepts every step."""


def draw_nothing() -> None:
    """Default of a kind that needs no more than every step."""


def keep(step: Step) -> Step:
    """Default of a kind that needs nothing made ready."""
    return step


def no_parts() -> Mapping[str, Any]:
    """Default of a kind that needs no more than every step."""
    return {}


@dataclass(frozen=True, kw_only=True)
class StepKind:
    """`name` stands in links and in what is kept, `title` in the menu, at its `place`. What is asked of a learner is
    said by `asks`, in their language, and of a teacher's list by `detail`.

    `draw` draws the field of an answer; of a kind without one, what stands on the page is the answer. `grade` raises
    ValueError, with a sentence, for what is no answer, and is given the run of the learner's page where the kind is
    `about_run`, whose model `unsuited` may refuse in a sentence. `sample` is some answer, right or wrong: `grade` of it
    says what is right where an answer `is_graded`. `chart` is the tally as a picture.

    `draw_parts` draws what else the form of a step has, `read_parts` are those fields of the Step; `check` raises
    ValueError, with a sentence, for a step that lacks some. A step is asked on pages that run a model, and of a kind
    that is not `about_run` on `pages` too, or, with `only`, on those alone. With `about_page` the answer is what the
    page looks at, and its run where it has one.

    `prepare` makes ready on this server what a step needs before its page opens, and gives the step with the way there;
    a kind that `brings_model` has its own there, so that the form asks for none.

    An answer may be given `again`; of what is `scored` none is right, and some do better; `free_text` is the learner's
    own; what the page `covers` until then gives the answer away; `at_once` can be said of a step whose answer can be
    shown to who gave theirs.
    """

    name: str
    place: int
    title: str
    asks: Callable[[Step], str]
    draw: Callable[[Step, Given | None], None] | None
    grade: Callable[[Step, Given | None, Any], Grade] | None
    sample: Callable[[Step, Given | None], Any]
    is_graded: Callable[[Step], bool]
    chart: Chart | None
    again: bool
    about_run: bool
    scored: bool = False
    covers: bool = False
    free_text: bool = False
    at_once: bool = True
    pages: tuple[str, ...] = ("course", "train")
    only: bool = False
    brings_model: bool = False
    prepare: Callable[[Step], Step] = keep
    about_page: bool = False
    unsuited: Callable[[Checkpoint], str] = suits
    check: Callable[[Step], None] = accept
    draw_parts: Callable[[], None] = draw_nothing
    read_parts: Callable[[], Mapping[str, Any]] = no_parts
    detail: Callable[[Step], str] = lambda step: ""


@cache
def kinds() -> dict[str, StepKind]:
    """All kinds by name, in the order of the menu."""
    return {one.name: one for one in collect("pages.controls.classes.kinds", "KIND", StepKind)}


def kind_of(step: Step) -> StepKind:
    """Raises ValueError, with a sentence, for a kind that there is not."""
    if step.kind not in kinds():
        raise ValueError(f"expected a kind of step, one of {', '.join(kinds())}, got {step.kind[:20]!r}.")
    return kinds()[step.kind]


def check_step(step: Step) -> Step:
    """Raises ValueError, with a sentence, for a step of no kind, or one that lacks a part."""
    kind_of(step).check(step)
    return step


def make_ready(step: Step) -> None:
    """Makes ready what a step needs on this server, or says why it cannot be."""
    try:
        kind_of(step).prepare(step)
    except (ValueError, OSError) as error:
        st.warning(escape_markdown(str(error)[:1].upper() + str(error)[1:]))


def number_field(most: float) -> Callable[[Step, Given | None], None]:
    """A field of a number from 0 on, for `draw`."""

    def draw(step: Step, given: Given | None) -> None:
        st.number_input("number", 0.0, most, None, key=FIELD, step=0.01)

    return draw


def no_answer(step: Step, given: Given | None) -> None:
    """The `sample` of a kind that nothing has to be said for."""


def never(step: Step) -> bool:
    return False


def always(step: Step) -> bool:
    return True


def is_graded(step: Step) -> bool:
    """True if an answer to a step is right or wrong."""
    return step.kind in kinds() and kinds()[step.kind].is_graded(step)


def grade(step: Step, given: Given | None, said: Any) -> Grade:
    """Raises ValueError, with a sentence, where the model cannot be asked so, or the answer is none."""
    kind = kind_of(step)
    if kind.grade is None:
        raise ValueError("this step asks nothing.")
    if given is not None and (why := kind.unsuited(given.checkpoint)):
        raise ValueError(why)
    return kind.grade(step, given, said)
