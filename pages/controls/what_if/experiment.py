"""What if: edits of a run, shared by the pages that run a model. They stay from page to page, and stand in the address.

`what_if` draws the panel and what the edits did, and says which run the page is to draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from engine.analysis.overview_cache import LongRun
from engine.edits import ApplyAdapter, Edit
from engine.edits.experiment import Experiment
from engine.inputs.readers import kind
from engine.runtime import library
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding
from pages.controls.model_input.browser_history import went_back
from pages.controls.model_input.model_input import Subject, look, reading
from pages.controls.share.links import GUESS, PREDICT, REVEALED
from pages.controls.share.prediction import EDITS, is_revealed, predicts_edits, predicts_runs, remember
from pages.controls.share.run_export import fields_of
from pages.controls.what_if.adapters import known_adapters
from pages.controls.what_if.edit_fields import place_of
from pages.controls.what_if.edit_form import Draft, Form
from pages.controls.what_if.edit_kinds import KINDS, Kind, in_words, kind_of
from pages.controls.what_if.experiment_link import clip, from_link, linkable, to_link, unlinkable_sentence
from views.attention.long import LongContext, long_context
from views.checkpoint.checkpoint import escape_markdown
from views.core.component import view
from views.core.lanes import lanes
from views.core.payload import pack
from views.core.run_context import Run, RunContext
from views.what_if.continuation import continuations
from views.what_if.edit_sources import to_form
from views.what_if.effects import effects
from views.what_if.experiment import Editable, editable, from_form, panel
from views.what_if.questions import EditsContext

PANEL, EFFECTS = "what if", "what if effects"  # keys of the two views
MADE, SAID, READ = "experiment", "experiment says", "experiment in the address"  # in the session state
CHANGED, OPENING, DRAFT, DRAFTS = "experiment changed", "edit to open", "edit in the form", "edits opened"
SHAPE = "edits offered"  # what of the model decided which edits the form can make
LEFT = "left to compare"
ADDRESS = "edits"
MISFITS = (ValueError, KeyError, IndexError, RuntimeError)  # of an edit that was made for another model or text
SILENT: dict[str, Any] = {"broken": [], "refused": ""}  # what the panel says where there is nothing to say
UNWRITTEN = (
    "An edit names a token that the model wrote itself, and writing begins before it; "
    "type what it wrote into its field, and it goes on after that."
)
UNDRAWN = (
    "An edit names a pixel that the model drew itself, and drawing begins before it; "
    "give more pixels, and it goes on after those."
)

experiment_panel = view("what_if/experiment", events=("change",))
effects_view = view("what_if/effects", events=("reveal",))


def write_on(subject: Subject, before: Sequence[Edit], after: Sequence[Edit]) -> bytes:
    """Writes how the text goes on under both. Raises ValueError, with a sentence."""
    checkpoint, read = subject.checkpoint, subject.reading
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
    named = before.trace if whole else run_beginning(subject)
    model = editable(subject.checkpoint, named, before.lanes, shown_picture(), adapters)
    show(made, model, unfit, compared, after.digest)
    return before if hidden else after, edits_context(subject, before, after, controls)


def edits_context(subject: Subject, before: Run, after: Run, controls: Sequence[Edit] = ()) -> EditsContext:
    def without(number: int | None) -> Run:
        made = current()
        if number is None or not 0 <= number < len(made.entries):
            return after
        return run_edits(subject, controls, made.switch(number, False), before)[0]

    write = partial(write_on, subject, before.trace.edits, after.trace.edits)
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


def run_beginning(subject: Subject) -> Trace:
    """A run on the first token, in which every value has its name; of a picture, which has no first part, on all."""
    read, target = subject.reading.read, subject.reading.target
    if isinstance(read, Encoding):
        read, target = read.first(1), target and target.first(1)
    return library.traces.trace(subject.name, read, (), target)


def show(made: Experiment, model: Editable, unfit: Mapping[int, str], compared: bytes, trace: str) -> None:
    """Draws the edits, the form that is open, and what the edits did; `trace` is the name of the run that is drawn."""
    st.session_state.pop(CHANGED, None)
    words = [in_words(entry.edit, model.terms) for entry in made.entries]
    drawn = panel(made, words, unfit, notes(made, model))
    with st.container(key="experiment panel", gap=None):
        with st.container(key="experiment edits", gap=None):  # a link hides it, and keeps what the edits did
            edit_panel(drawn, model, trace)
        effects_view(compared, key=EFFECTS, on={"reveal": reveal})


@st.fragment
def edit_panel(drawn: bytes, model: Editable, trace: str) -> None:
    """The list of edits and under it the form of one, which is opened and filled in without a run of the page."""
    state = st.session_state
    experiment_panel(drawn, key=PANEL, on={"change": change})
    with st.container(key="way to compare"):  # unseen: the panel takes it, since st.switch_page refuses bound fields
        st.page_link("pages/explore/compare.py", label="Compare")
    if state.pop(CHANGED, False):
        st.rerun()
    if OPENING in state:
        state[DRAFT] = open_draft(state.pop(OPENING), model)
    draft = follow_draft(state.get(DRAFT), model)
    if draft is not None:
        with st.container(border=True, key="edit form", gap="small"):
            draw_form(draft, Form(model, draft, trace))


def draw_form(draft: Draft, form: Form) -> None:
    kind, number = KINDS[draft.kind], draft.number
    with form.above:
        st.markdown(f"**{kind.title}**" if number is None else f"**{kind.title}: edit {number + 1}**")
    kind.draw(form)
    refused = st.container()
    with st.container(horizontal=True, gap="small"):
        key = f"edit {draft.serial}"
        applied = st.button("Add" if number is None else "Change", type="primary", key=f"{key} apply")
        st.button("Cancel", key=f"{key} cancel", on_click=lambda: st.session_state.pop(DRAFT, None))
    if applied:
        draft.refused = apply(draft, kind, form.faults)
    if draft.refused:
        refused.error(escape_markdown(draft.refused))


def apply(draft: Draft, kind: Kind, faults: Sequence[str]) -> str:
    """Makes the edit that the form says, and runs the page; returns what is wrong with one that cannot be made."""
    state = st.session_state
    made: Experiment = state[MADE]
    try:
        if faults:
            raise ValueError(faults[0])
        edit = from_browser(kind.edit(draft.values), draft.opened)
        state[MADE] = made.add(edit) if draft.number is None else made.change(draft.number, edit)
    except MISFITS as error:
        return sentence(error)
    state.pop(DRAFT, None)
    state[SAID] = SILENT
    st.rerun()


def open_draft(asked: Mapping[str, Any], model: Editable) -> Draft | None:
    """The form that a browser asks for: of a new edit, or of one that is made; None where there is no such."""
    state, made = st.session_state, current()
    address = asked.get("address")
    place = place_of(model, look() | (address if isinstance(address, dict) else {}))
    state[DRAFTS] = serial = state.get(DRAFTS, 0) + 1
    match asked:
        case {"do": "open", "kind": str(name)} if name in KINDS and KINDS[name].fits(model):
            return Draft(name, KINDS[name].blank(model, place), place.row, serial=serial)
        case {"do": "edit", "number": int(number)} if 0 <= number < len(made.entries):
            edit = made.entries[number].edit
            values = to_form(edit, model.terms)
            kind = kind_of(values, model)
            return Draft(kind.name, kind.read(values), place.row, number, edit, serial) if kind else None
    return None


def follow_draft(draft: Draft | None, model: Editable) -> Draft | None:
    """The draft, with the number that its edit has now; None where it was made for another model."""
    state = st.session_state
    if draft is None or state.setdefault(SHAPE, model.shape) != model.shape:
        state.pop(DRAFT, None)
        state[SHAPE] = model.shape
        return None
    if draft.number is not None:
        edits = [entry.edit for entry in current().entries]
        if not (draft.number < len(edits) and edits[draft.number] == draft.opened):
            draft.number = edits.index(draft.opened) if draft.opened in edits else None
    return draft


def notes(made: Experiment, model: Editable) -> dict[str, Any]:
    """Builds what the panel reads beside the edits."""
    state = st.session_state
    said = state.get(SAID, SILENT)
    broken = said["broken"] if linkable(made) else [*said["broken"], unlinkable_sentence(made)]
    opens = [kind_of(to_form(entry.edit, model.terms), model) is not None for entry in made.entries]
    kinds = [
        {"name": one.name, "title": one.title, "about": one.about, "lacking": "" if one.fits(model) else one.lacking}
        for one in KINDS.values()
    ]
    asked = {"guessing": predicts_edits(), "asked": predicts_runs(), "left": state.get(LEFT, 0)}
    return {"opens": opens, "kinds": kinds, **asked, **said, "broken": broken}


def guessed_at(name: str) -> bool:
    """Tells whether the effect of the run of this name is still to be guessed."""
    return predicts_edits() and not is_revealed(name)


def shown_picture() -> str:
    """Name under which an edit keeps the picture that the page shows."""
    state = st.session_state
    if state.get("upload"):
        return "your own picture"
    drawn = kind(library.checkpoint(state.model)) == "pixels"
    return f"picture {state.get('picture', 0)}{' as it is completed' if drawn else ''}"


def current() -> Experiment:
    """Returns the experiment of the session, or of the address that it was opened with, or that a link of another page
    led to; the address follows it."""
    state, address = st.session_state, st.query_params.get(ADDRESS)
    if MADE not in state or (address is not None and address != state.get(READ, address) and not went_back()):
        found, broken = (Experiment(), []) if address is None else from_link(address)
        state[MADE] = state.get(MADE, found).replace_all(found.entries)
        state[SAID] = SILENT | {"broken": broken}
    made: Experiment = state[MADE]
    if not state.get(SAID, SILENT)["broken"]:  # else the address keeps what it says until an edit is made
        link = to_link(made) if made.entries and linkable(made) else None
        if link is None:
            st.query_params.pop(ADDRESS, None)
        elif st.query_params.get(ADDRESS) != link:
            st.query_params[ADDRESS] = link
    state[READ] = st.query_params.get(ADDRESS, "")
    return made


def run_edits(
    subject: Subject, controls: Sequence[Edit], made: Experiment, before: Run
) -> tuple[Run, dict[int, str]]:
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
            raise ValueError(f"the run no longer holds numbers at {hook}: they grow too large; choose a smaller one.")
    return made


def sentence(error: Exception) -> str:
    return clip(str(error.args[0])) if error.args else type(error).__name__


def change() -> None:
    """Carries out a request of the panel, which a browser sends, so that anything may come."""
    state = st.session_state
    made: Experiment = state[MADE]
    asked = event_value(PANEL, "change")
    if asked is None:
        return
    asked = asked if isinstance(asked, Mapping) else {}
    if asked.get("do") in ("open", "edit"):
        state[OPENING] = asked
        return
    state[CHANGED], state[SAID] = True, SILENT
    try:
        state[MADE] = carry_out(made, asked)
    except MISFITS as error:
        state[SAID] = SILENT | {"refused": sentence(error)}


def carry_out(made: Experiment, asked: Mapping[str, Any]) -> Experiment:
    """Raises ValueError for what is no change."""
    match asked:
        case {"do": "switch", "number": int(number), "on": bool(on)}:
            return made.switch(number, on)
        case {"do": "all", "on": bool(on)}:
            return made.switch_all(on)
        case {"do": "strength", "number": int(number), "value": int(value) | float(value)}:
            return set_strength(made, number, value)
        case {"do": "remove", "number": int(number)}:
            return made.remove(number)
        case {"do": "clear"}:
            return made.clear()
        case {"do": "undo"}:
            return made.undo()
        case {"do": "redo"}:
            return made.redo()
        case {"do": "guess", "on": bool(on)}:
            if not predicts_runs():  # else a teacher's link asks
                remember(**{PREDICT: EDITS if on else ""})
            return made
        case {"do": "compare"}:
            leave()
            return made
    raise ValueError("The panel asked for something this page does not know; reload the page.")


def set_strength(made: Experiment, number: int, value: float) -> Experiment:
    """Raises ValueError for an edit that has none."""
    edit = made.entries[number].edit if 0 <= number < len(made.entries) else None
    if not isinstance(edit, ApplyAdapter):
        raise ValueError("Only an adapter has a strength to set; reload the page.")
    draft = st.session_state.get(DRAFT)
    if draft is not None and draft.number == number:
        del st.session_state[DRAFT]
    return made.change(number, replace(edit, strength=float(value)))


def leave() -> None:
    """Prepares Compare, where the panel leads then: A as this page has it, B under the edits, whatever was there
    before."""
    from pages.controls.compare.defaults import LAST, LETTERS, OWN, key  # which needs the edits that are made here

    for own in (LAST, *(key(letter, field) for letter in LETTERS for field in OWN)):
        st.session_state.pop(own, None)
    st.session_state[LEFT] = st.session_state.get(LEFT, 0) + 1


def from_browser(data: Mapping[str, Any], was: Edit | None = None) -> Edit:
    checkpoint = library.checkpoint(st.session_state.model)
    return from_form(data, checkpoint, reading(checkpoint), was)


def reveal() -> None:
    remember(**{REVEALED: str(event_value(EFFECTS, "reveal") or ""), GUESS: ""})


def event_value(key: str, event: str) -> Any:
    """Reads what a view sent; None where its page was left meanwhile."""
    return getattr(st.session_state.get(key), event, None)
