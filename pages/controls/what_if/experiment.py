"""What if: edits of a run, shared by the pages that run a model. They stay from page to page, and stand in the address.

`what_if` draws the panel and what the edits did, and says which run the page is to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import streamlit as st

from engine.analysis.overview_cache import LongRun
from engine.checkpoints import Checkpoint
from engine.edits import Edit
from engine.edits.experiment import Experiment
from engine.inputs.readers import Reading, kind
from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from pages.controls.model_input.model_input import Subject, field_value, fields_of, look, reading
from pages.controls.prediction import EDITS as EFFECT
from pages.controls.prediction import (
    GUESS,
    PREDICT,
    REVEALED,
    is_revealed,
    predicts_edits,
    predicts_runs,
    remember,
)
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Hideable, Text
from pages.controls.state.session import event_value, find_record
from pages.controls.what_if.adapters import draw_switches, known_adapters
from pages.controls.what_if.edit_panel import MISFITS, EditPanel, sentence
from pages.controls.what_if.experiment_link import from_link, linkable, to_link, unlinkable_sentence
from pages.controls.what_if.kind import kind_of
from views.attention.long import LongContext, long_context
from views.core.component import view
from views.core.lanes import lanes
from views.core.payload import pack
from views.core.run_context import Run, RunContext
from views.what_if.continuation import continuations
from views.what_if.edit_words import Terms
from views.what_if.effects import effects
from views.what_if.experiment import editable
from views.what_if.questions import EditsContext

EFFECTS = "what if effects"  # key of the view of what the edits did
EDITS = PageState(  # of every page that runs a model
    "what if",
    Hideable("what if", hidden_as="what if …", element=".st-key-experiment-edits"),
    Text("edits", "", READABLE, carried=True),
)
UNWRITTEN = (
    "An edit names a token that the model wrote itself, and writing begins before it; "
    "type what it wrote into its field, and it goes on after that."
)
UNDRAWN = (
    "An edit names a pixel that the model drew itself, and drawing begins before it; "
    "give more pixels, and it goes on after those."
)


@dataclass
class EditTrial:
    """The edits that are tried, with the way back; `text` is what the address says of them, and `compare_count` how
    often they have led to Compare."""

    experiment: Experiment = field(default_factory=Experiment)
    text: str = ""
    compare_count: int = 0


effects_view = view("what_if/effects", events=("reveal",))


def write_on(checkpoint: Checkpoint, read: Reading, before: Sequence[Edit], after: Sequence[Edit]) -> bytes:
    """Writes how the text goes on under both. Raises ValueError, with a sentence."""
    try:
        return continuations(checkpoint, read, before, after)
    except MISFITS as error:
        made_itself = UNDRAWN if read.original is not None else UNWRITTEN
        raise ValueError(made_itself if read.written else f"Nothing can be written: {sentence(error)}") from None


def what_if(subject: Subject, controls: Sequence[Edit] = (), whole: bool = True) -> tuple[Run, EditsContext]:
    """Runs the text, `whole` or in pieces, and draws what edits did. `controls` are the edits that the page's own
    controls make: both runs that are compared have them.

    Returns the run to draw: with the edits, or that before them while they are still guessed at; and both.
    """
    made = current()
    adapters = known_adapters(subject.name, subject.checkpoint, made)
    before = run(subject, controls, whole)
    after, unfit = run_edits(subject, controls, made, before)
    changed = after is not before
    hidden = changed and guessed_at(after.digest)
    compared = effects(before, after, subject.reading, hidden=hidden) if changed else pack({"trace": None}, {})
    named = before.trace if whole else run_beginning(subject.name, subject.reading)
    model = editable(subject.checkpoint, named, before.lanes, shown_picture(subject.checkpoint), adapters)
    with st.container(key="experiment panel", gap=None):
        with st.container(key="experiment edits", gap=None):  # a link hides it, and keeps what the edits did
            draw_switches(subject.checkpoint, made, keep_experiment)
            EDITS_OF_PAGE.draw(model, after.digest, unfit, notes(made) | {"everywhere": sweeps_of(made, model.terms)})
            # Unseen: the panel takes it, since st.switch_page refuses fields that are bound.
            with st.container(key="way to compare"):
                st.page_link("pages/explore/compare.py", label="Compare")
        effects_view(compared, key=EFFECTS, on={"reveal": reveal})
    return before if hidden else after, edits_context(subject, before, after, controls)


def edits_context(subject: Subject, before: Run, after: Run, controls: Sequence[Edit] = ()) -> EditsContext:
    def without(number: int | None) -> Run:
        made = current()
        if number is None or not 0 <= number < len(made.entries):
            return after
        return run_edits(subject, controls, made.switch(number, False), before)[0]

    write = partial(write_on, subject.checkpoint, subject.reading, before.trace.edits, after.trace.edits)
    return EditsContext(before, after, subject.reading, without, write)


def run(subject: Subject, edits: Sequence[Edit], whole: bool = True, base: Run | None = None) -> Run:
    """Runs the model; from a `base`, only what the difference in edits can change is computed again."""
    name, checkpoint, read = subject.name, subject.checkpoint, subject.reading
    stacks, fields = lanes(checkpoint, read), partial(fields_of, subject)
    if whole:
        before = base.trace if base else None
        trace = library.traces.trace(name, read.read, edits, read.target, before)
        return RunContext(name, checkpoint, trace, stacks, before or trace, fields)
    made = LongRun(checkpoint.model, read.read, tuple(edits), read.target)
    start = base.made if isinstance(base, LongContext) else None
    return long_context(name, checkpoint, stacks, made, look(), start, fields)


def run_beginning(name: str, reading: Reading) -> Trace:
    """A run on the first token, in which every value has its name; of a picture, which has no first part, on all."""
    read, target = reading.read, reading.target
    if isinstance(read, Encoding):
        read, target = read.first(1), target and target.first(1)
    return library.traces.trace(name, read, (), target)


def notes(made: Experiment) -> dict[str, Any]:
    """Builds what the panel reads beside the edits."""
    asked = {"guessing": predicts_edits(), "asked": predicts_runs(), "left": find_record(EditTrial).compare_count}
    return asked if linkable(made) else asked | {"broken": [*EDITS_OF_PAGE.state.broken, unlinkable_sentence(made)]}


def sweeps_of(made: Experiment, terms: Terms) -> list[dict[str, str]]:
    """Finds for each edit the controls of the page Interventions that do the same at every place, under the other
    edits; empty where it has no such sweep."""
    found = []
    for number, entry in enumerate(made.entries):
        controls = kind_of(entry.edit).everywhere(entry.edit, terms) if entry.on else {}
        left = made.remove(number)
        found.append({**controls, "edits": to_link(left) if left.entries else ""} if controls else {})
    return found


def guessed_at(name: str) -> bool:
    """Tells whether the effect of the run of this name is still to be guessed."""
    return predicts_edits() and not is_revealed(name)


def shown_picture(checkpoint: Checkpoint, said: Callable[[str], Any] = field_value) -> str:
    """Name under which an edit keeps the picture that the page shows."""
    if said("upload"):
        return "your own picture"
    return f"picture {said('picture')}{' as it is completed' if kind(checkpoint) == 'pixels' else ''}"


def current() -> Experiment:
    """The edits that are tried, or that a link or the browser's history has led to. The address keeps what could not be
    read until an edit is made."""
    tried, text = find_record(EditTrial), EDITS.open().begin("edits")
    if text != tried.text:
        found, broken = from_link(text) if text else (Experiment(), [])
        tried.experiment, tried.text = tried.experiment.replace_all(found.entries), text
        EDITS_OF_PAGE.say(broken=broken)
    return tried.experiment


def run_edits(subject: Subject, controls: Sequence[Edit], made: Experiment, before: Run) -> tuple[Run, dict[int, str]]:
    """The run under the edits that are on and fit, and by its number why another does not; `before` is that with none
    of them, under the page's own `controls` alone."""
    on = {number: entry.edit for number, entry in enumerate(made.entries) if entry.on}
    refused, fits = dict[int, str](), list(controls)
    if not on:
        return before, refused
    try:
        return finite(run(subject, [*controls, *on.values()], before.whole, before)), refused
    except MISFITS:
        found = before
    for number, edit in on.items():  # one after the other, to know which
        try:
            found = finite(run(subject, [*fits, edit], before.whole, before))
            fits.append(edit)
        except MISFITS as error:
            refused[number] = f"It does not fit here and is off: {sentence(error)}"
    return found, refused


def finite(made: Run) -> Run:
    """The run itself. Raises ValueError where its residual stream or its logits are no numbers any more."""
    trace = made.trace
    for hook in trace:
        if hook.endswith(("resid_pre", "resid_post", "logits")) and not bool(trace[hook].isfinite().all()):
            raise ValueError(f"values overflow at {hook}; choose a smaller number.")
    return made


def carry_out(asked: Mapping[str, Any]) -> bool:
    """Carries out a request of the panel other than a change of its edits; returns False where it is not one."""
    match asked:
        case {"do": "guess", "on": bool(on)}:
            if not predicts_runs():  # else a teacher's link asks
                remember(**{PREDICT: EFFECT if on else ""})
        case {"do": "compare"}:
            leave()
        case _:
            return False
    return True


def leave() -> None:
    """Lets Compare, where the panel leads then, begin anew: A as this page has it, B under the edits."""
    find_record(EditTrial).compare_count += 1


def reveal() -> None:
    remember(**{REVEALED: str(event_value(EFFECTS, "reveal") or ""), GUESS: ""})


def keep_experiment(made: Experiment) -> None:
    tried = find_record(EditTrial)
    tried.experiment, tried.text = made, to_link(made) if made.entries and linkable(made) else ""
    EDITS.choose("edits", tried.text)


def read_subject() -> tuple[Checkpoint, Reading]:
    checkpoint = library.checkpoint(field_value("model"))
    return checkpoint, reading(checkpoint)


EDITS_OF_PAGE = EditPanel(
    "what if", lambda: find_record(EditTrial).experiment, keep_experiment, read_subject, others=carry_out
)
