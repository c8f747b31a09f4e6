"""What a learner hands in: what their page shows, whether that is what the step is about, and what is right of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

from engine.checkpoints import Checkpoint
from engine.checkpoints.locate import current_name
from engine.edits import AttentionTemperature, Edit
from engine.edits.experiment import Experiment
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.classes.kind import StepKind, grade, kind_of
from pages.controls.menu import Entry
from pages.controls.model_input.model_input import (
    EMPTY,
    EVERY_FIELD,
    example,
    field_value,
    find_carried,
    looked_at,
    reading,
)
from pages.controls.model_input.parameters import ATTENTION
from pages.controls.share.links import address_now
from pages.controls.state.history import is_drawn
from pages.controls.state.page_state import STATES
from pages.controls.state.session import widget_value
from pages.controls.what_if.experiment import current
from pages.controls.what_if.experiment_link import from_link
from server.classes.grading import Given, Grade, grade_page
from server.classes.steps import Step
from server.settings import FIRST_MODEL
from views.core.component import PAGE

WITH_A_RUN = "walkthrough", "attention"  # whose run can be handed in


@dataclass(frozen=True)
class PageInput:
    """Inputs of a page's run: a model, what it reads, and the edits."""

    model: str
    checkpoint: Checkpoint
    read: Encoding
    edits: tuple[Edit, ...]

    @property
    def grading_input(self) -> Given:
        trace = library.traces.trace(self.model, self.read, self.edits)
        return Given(self.checkpoint, self.read, trace)


def shown_now() -> PageInput:
    """Inputs of the run on this visitor's page. Raises ValueError, with a sentence, where it reads no text."""
    return find_page_input(looked_at()[0], field_value, find_carried().values.get(ATTENTION.name, 1.0), current())


def shown_by(step: Step) -> PageInput:
    """Inputs of the run on the page to which the link of a step leads. Raises ValueError where it reads no text."""
    name, query = current_name(step.query.get("model", FIRST_MODEL)), dict(step.query)
    fields: dict[str, Any] = {field: EMPTY.get(field, "") for field in EVERY_FIELD} | example(name)
    said = query.get(ATTENTION.name, "")
    temperature = ATTENTION.default if not said or ATTENTION.must_be(said) else ATTENTION.parse(said)
    edits = from_link(query["edits"])[0] if query.get("edits") else Experiment()
    return find_page_input(name, (fields | query).get, temperature, edits)


def find_page_input(name: str, said: Callable[[str], Any], temperature: float, made: Experiment) -> PageInput:
    checkpoint = library.checkpoint(name)
    read = reading(checkpoint, said=said).read
    if not isinstance(read, Encoding) or not len(read):
        raise ValueError("This question is about a text; type one on the page.")
    tempered = [] if temperature == 1 else [AttentionTemperature(temperature)]
    return PageInput(name, checkpoint, read, (*tempered, *made.edits))


def given_now(kind: StepKind) -> Given | None:
    """Run that the page shows, for a question about it. Raises ValueError, with a sentence, where it shows none."""
    if not kind.about_run and not (kind.about_page and widget_value(PAGE) in WITH_A_RUN):
        return None
    if why := kind.unsuited(library.checkpoint(looked_at()[0])):
        raise ValueError(why)
    return shown_now().grading_input


def differs(step: Step) -> str:
    """Says in English what the page shows that is not the step's own; "" where an answer counts."""
    kind = kind_of(step)
    if not kind.about_run:
        return ""
    now, asked = shown_now(), shown_by(step)
    if now.model != asked.model:
        return "another model"
    if [one.to_dict() for one in now.edits] != [one.to_dict() for one in asked.edits]:
        return "other edits"
    own = step.own_text or kind.free_text
    return "" if own or now.read.ids == asked.read.ids else "another text"


def grade_sample(step: Step) -> Grade:
    """The grade of some answer to a step on its own page. Raises ValueError, with a sentence, for what nobody could
    answer there."""
    kind = kind_of(step)
    given = shown_by(step).grading_input if kind.about_run else None
    return grade(step, given, kind.sample(step, given))


def truth_of(step: Step) -> str:
    """Right answer to a step on its own page; "" where nothing is, or it cannot be computed."""
    try:
        return grade_sample(step).truth if kind_of(step).is_graded(step) else ""
    except (ValueError, OSError):
        return ""


def answer_now(step: Step, said: Any, looked: str) -> Mapping[str, Any]:
    """The content of an answer: the grade of what the field says about what the page shows, and a link to that, which
    looks at what `looked` says as behind a #.

    Raises ValueError, with a sentence, for what can be no answer.
    """
    result = grade_now(step, said, dict(parse_qsl(looked.removeprefix("#"))))
    return {**asdict(result), "page": widget_value(PAGE, ""), "link": link_to_page(), "looked": looked}


def grade_now(step: Step, said: Any, looked: Mapping[str, str]) -> Grade:
    kind = kind_of(step)
    if kind.draw is not None and (said is None or not str(said).strip()):
        raise ValueError("Nothing is answered yet; answer first.")
    found = grade(step, given_now(kind), looked if kind.about_page else said)
    if elsewhere := differs(step):
        return replace(found, right=None, score=None, elsewhere=elsewhere)
    return found


def glance(entry: Entry, link: Mapping[str, str], looked: str) -> tuple[str, Sequence[Sequence[int]]]:
    """Summary of a page in a line, and the attention that it looks at as a small picture; none of a page that reads no
    text, and of a model that is not here."""
    if not entry.opens:
        return link.get("lesson", ""), []
    try:
        found = grade_page(shown_by(Step(entry.address, link)).grading_input, dict(parse_qsl(looked.removeprefix("#"))))
    except (ValueError, OSError) as error:
        return str(error), []
    return found.said, found.picture


def link_to_page() -> dict[str, str]:
    """The query of a link that opens the page as it is shown, also what it shows by itself: another browser's page may
    open on something else."""
    here, found = widget_value(PAGE, ""), dict[str, str]()
    for state in (one for one in STATES if one.page == here):
        drawn = {name: parameter for name, parameter in state.parameters.items() if is_drawn(name)}
        found |= {name: str(parameter.text(state.now(name))) for name, parameter in drawn.items()}
    return {name: text for name, text in found.items() if text} | address_now()
