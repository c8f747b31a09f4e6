"""A list of edits in words and the form of one: of the run that a page shows, or of one side of Compare."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import streamlit as st

from engine.checkpoints import Checkpoint
from engine.edits.experiment import Experiment
from engine.inputs.readers import Reading
from pages.controls.model_input.model_input import look
from pages.controls.state.session import event_value, find_record
from pages.controls.what_if.edit_fields import place_of
from pages.controls.what_if.edit_form import Draft, Form
from pages.controls.what_if.experiment_link import clip
from pages.controls.what_if.kind import EditKind, form_kind, kind_of, kinds
from views.core.component import view
from views.core.markdown import escape_markdown
from views.core.questions import UNKNOWN
from views.what_if.edit_sources import to_form
from views.what_if.experiment import Editable, from_form, panel

MISFITS = (ValueError, KeyError, IndexError, RuntimeError)  # of an edit that was made for another model or text

experiment_panel = view("what_if/experiment", events=("change",))


@dataclass
class PanelState:
    """State of a panel: why the last change was not made, sentences about edits that were not read, whether the
    experiment changed, which form a browser asks for, the form that is open, and the shape of the model it is for."""

    refused: str = ""
    broken: Sequence[str] = ()
    changed: bool = False
    opening: Mapping[str, Any] | None = None
    draft: Draft | None = None
    shape: Any = None


@dataclass
class Panels:
    """The session's panels by the key of their view, and how many forms there were."""

    states: defaultdict[str, PanelState] = field(default_factory=lambda: defaultdict(PanelState))
    drafts: int = 0


@dataclass(frozen=True)
class EditPanel:
    """`key` is that of its view. `get` and `put` are the experiment,
    `read` says what model the edits are of and what that reads, `look` what a form begins at where the address does
    not say it, and `others` carries out what else its view asks for.
    """

    key: str
    get: Callable[[], Experiment]
    put: Callable[[Experiment], None]
    read: Callable[[], tuple[Checkpoint, Reading]]
    look: Callable[[], Mapping[str, int]] = look
    others: Callable[[Mapping[str, Any]], bool] = lambda _: False

    @property
    def state(self) -> PanelState:
        return find_record(Panels).states[self.key]

    def say(self, refused: str = "", broken: Sequence[str] = ()) -> None:
        self.state.refused, self.state.broken = refused, broken

    def draw(self, model: Editable, trace: str, unfit: Mapping[int, str], notes: Mapping[str, Any]) -> None:
        """`trace` is the name of the run that is drawn, `unfit` says by its number why an edit does not fit, and
        `notes` are what the view reads beside the edits."""
        made = self.get()
        self.state.changed = False
        opens = [form_kind(to_form(entry.edit, model.terms), model) is not None for entry in made.entries]
        lacking = {kind.name: "" if kind.fits(model) else kind.lacking for kind in kinds().values()}
        offered = [
            {"name": kind.name, "title": kind.title, "about": kind.about, "lacking": lacking[kind.name]}
            for kind in kinds().values()
        ]
        known = [(entry.edit, kind_of(entry.edit)) for entry in made.entries]
        words = [kind.words(edit, model.terms) for edit, kind in known]
        strengths = {
            i: (getattr(edit, kind.slider), *kind.slider_span)
            for i, (edit, kind) in enumerate(known)
            if kind.slider and hasattr(edit, kind.slider)
        }
        said = {"refused": self.state.refused, "broken": list(self.state.broken)}
        drawn = panel(made, words, strengths, unfit, {"opens": opens, "kinds": offered, **said, **notes})
        edit_panel(self, drawn, model, trace)

    def change(self) -> None:
        """Carries out a request of the view, which a browser sends, so that anything may come."""
        asked = event_value(self.key, "change")
        if asked is None:
            return
        asked = asked if isinstance(asked, Mapping) else {}
        if asked.get("do") in ("open", "edit"):
            self.state.opening = asked
            return
        self.state.changed = True
        self.say()
        try:
            if not self.others(asked):
                self.put(self.carry_out(self.get(), asked))
        except MISFITS as error:
            self.say(refused=sentence(error))

    def carry_out(self, made: Experiment, asked: Mapping[str, Any]) -> Experiment:
        """Raises ValueError for what is no change."""
        match asked:
            case {"do": "switch", "number": int(number), "on": bool(on)}:
                return made.switch(number, on)
            case {"do": "all", "on": bool(on)}:
                return made.switch_all(on)
            case {"do": "strength", "number": int(number), "value": int(value) | float(value)}:
                return self.set_strength(made, number, value)
            case {"do": "remove", "number": int(number)}:
                return made.remove(number)
            case {"do": "clear"}:
                return made.clear()
            case {"do": "undo"}:
                return made.undo()
            case {"do": "redo"}:
                return made.redo()
        raise ValueError(UNKNOWN)

    def set_strength(self, made: Experiment, number: int, value: float) -> Experiment:
        """Raises ValueError for an edit that has none."""
        edit: Any = made.entries[number].edit if 0 <= number < len(made.entries) else None
        slider = kind_of(edit).slider if edit else ""
        if not slider or not hasattr(edit, slider):
            raise ValueError("Unknown request: this edit has no strength to set. Reload and try again.")
        if self.state.draft is not None and self.state.draft.number == number:
            self.state.draft = None
        return made.change(number, replace(edit, **{slider: float(value)}))

    def apply(self, draft: Draft, kind: EditKind, faults: Sequence[str]) -> str:
        """Makes the edit that the form says, and runs the page; returns what is wrong with one that cannot be made."""
        made = self.get()
        try:
            if faults:
                raise ValueError(faults[0])
            checkpoint, reading = self.read()
            edit = from_form(kind.write(draft.values, checkpoint), checkpoint, reading, draft.opened)
            self.put(made.add(edit) if draft.number is None else made.change(draft.number, edit))
        except MISFITS as error:
            return sentence(error)
        self.close_draft()
        self.say()
        st.rerun()

    def close_draft(self) -> None:
        self.state.draft = None

    def open_draft(self, asked: Mapping[str, Any], model: Editable) -> Draft | None:
        """The form that a browser asks for: of a new edit, or of one that is made; None where there is no such."""
        made, panels = self.get(), find_record(Panels)
        address = asked.get("address")
        place = place_of(model, {**self.look(), **(address if isinstance(address, dict) else {})})
        panels.drafts = serial = panels.drafts + 1
        match asked:
            case {"do": "open", "kind": str(name)} if name in kinds() and kinds()[name].fits(model):
                return Draft(name, kinds()[name].begin(model, place), place.row, serial=serial)
            case {"do": "edit", "number": int(number)} if 0 <= number < len(made.entries):
                edit = made.entries[number].edit
                values = to_form(edit, model.terms)
                kind = form_kind(values, model)
                if kind is not None:
                    values = kind.read(values, model.terms)
                    return Draft(kind.name, values, place.row, number, edit, serial)
        return None

    def follow_draft(self, model: Editable) -> Draft | None:
        """The draft, with the number that its edit has now; None where it was made for another model."""
        draft, before = self.state.draft, self.state.shape
        self.state.shape = model.shape
        if draft is None or before not in (None, model.shape):
            self.close_draft()
            return None
        if draft.number is not None:
            edits = [entry.edit for entry in self.get().entries]
            if not (draft.number < len(edits) and edits[draft.number] == draft.opened):
                draft.number = edits.index(draft.opened) if draft.opened in edits else None
        return draft


@st.fragment
def edit_panel(own: EditPanel, drawn: bytes, model: Editable, trace: str) -> None:
    """The list of edits, and the form of one, which is opened and filled in without a run of the page."""
    experiment_panel(drawn, key=own.key, on={"change": own.change})
    if own.state.changed:
        own.state.changed = False
        st.rerun()
    if own.state.opening is not None:
        own.state.draft, own.state.opening = own.open_draft(own.state.opening, model), None
    draft = own.follow_draft(model)
    if draft is not None:
        with st.container(border=True, key="edit form", gap="small"):
            draw_form(own, draft, Form(model, draft, trace))


def draw_form(own: EditPanel, draft: Draft, form: Form) -> None:
    kind, number = kinds()[draft.kind], draft.number
    title = escape_markdown(kind.title)
    with form.above:
        st.markdown(f"**{title}**" if number is None else f"**{title}: edit {number + 1:d}**")
    kind.draw(form)
    with st.container(key="edit form end", gap="small"):  # in sight, however long the form is
        refused = st.container()
        with st.container(horizontal=True, gap="small"):
            key = f"edit {draft.serial}"
            applied = st.button(
                "Add" if number is None else "Change",
                type="primary",
                key=f"{key} apply",
                disabled=bool(form.waits),
                help=form.waits or None,
            )
            st.button("Cancel", key=f"{key} cancel", on_click=own.close_draft)
    if applied:
        draft.refused = own.apply(draft, kind, form.faults)
    if draft.refused:
        refused.error(escape_markdown(draft.refused))


def sentence(error: Exception) -> str:
    return clip(str(error.args[0])) if error.args else type(error).__name__
