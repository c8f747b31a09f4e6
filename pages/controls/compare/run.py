"""What stands in the controls of the sides of a comparison, run: whole, or where a text is too long in parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, LiteralString

import streamlit as st

from engine.analysis.overview_cache import LongRun
from engine.checkpoints import Checkpoint
from engine.edits import Edit
from engine.edits.experiment import Experiment
from engine.inputs.readers import Reading, kind
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.compare.defaults import RUN, Sides, format_edits, library_name
from pages.controls.compare.parameters import value
from pages.controls.compare.picture import picture_value
from pages.controls.model_input.model_input import EVERY_FIELD, reading
from pages.controls.model_input.sound import ELSEWHERE
from pages.controls.state.session import find_record
from pages.controls.what_if.edit_panel import MISFITS, sentence
from pages.controls.what_if.experiment_link import from_link
from server.settings import GIVEN
from views.attention.long import long_context
from views.core.lanes import Lane, is_long, lanes
from views.core.markdown import escape_markdown
from views.core.run_context import Run, RunContext

LIMIT = max(GIVEN.long_tokens, GIVEN.max_tokens)  # tokens of a text


@dataclass(frozen=True)
class SideControls:
    """Values of the controls of a side; `problem` says which of its edits could not be read, or is empty. `field` gives
    what it reads: where its text was emptied, what it read before."""

    letter: LiteralString
    title: str
    name: str
    checkpoint: Checkpoint
    reading: Reading
    lanes: list[Lane]
    experiment: Experiment
    problem: str
    field: Callable[[str], Any]


@dataclass(frozen=True)
class Side(SideControls):
    """`run` is that with the edits that fit, as `make` makes it; `unfit` says by its number why another does not, and
    so does `problem`."""

    run: Run
    unfit: Mapping[int, str]
    make: Callable[[SideControls, Sequence[Edit]], Run]

    @property
    def before(self) -> Run:
        """Run without edits."""
        return self.make(self, ())

    def without(self, number: int | None) -> Run:
        """Run without one of the edits, by its number; with all of them where there is no such edit."""
        if number is None or not 0 <= number < len(self.experiment.entries):
            return self.run
        return run_side(replace(self, experiment=self.experiment.switch(number, False)), self.make).run

    @property
    def limit(self) -> int:
        return min(LIMIT, self.checkpoint.model.config.context)


def read_side(letter: LiteralString) -> SideControls | None:
    """Reads the controls of a side; None, with a sentence on the page, where that cannot be run."""
    field: Callable[[str], Any] = partial(picture_value, letter)
    kept = find_record(Sides).read
    try:
        name = library_name(letter)
        checkpoint = library.checkpoint(name)
        if kind(checkpoint) == "sound":
            raise ValueError(ELSEWHERE)
        read = reading(checkpoint, LIMIT, field)
        if len(read.read):
            kept[letter] = {"model": name} | {each: field(each) for each in EVERY_FIELD}
        elif kept.get(letter, {}).get("model") == name:
            field = kept[letter].get
            read = reading(checkpoint, LIMIT, field)
            st.info(f"{letter} has no text. Still showing its previous one.")
    except (ValueError, OSError) as error:
        st.warning(f"{letter}: {escape_markdown(error)}")
        return None
    if not len(read.read):
        st.info(f"{letter} has nothing to read yet.")
        return None
    experiment, broken = read_edits(letter)
    model: str = value(letter, "model")
    title = f"{model.removeprefix(RUN)} · step {value(letter, 'step'):,}" if model.startswith(RUN) else model
    stacks = lanes(checkpoint, read)
    return SideControls(letter, title, name, checkpoint, read, stacks, experiment, " ".join(broken), field)


def read_edits(letter: str) -> tuple[Experiment, list[str]]:
    """The edits of a side as its address has them, with the way back, and a sentence for each that cannot be read."""
    text = value(letter, "edits").strip()
    kept = find_record(Sides).experiments.get(letter, Experiment())
    if text == format_edits(kept):
        return kept, []
    found, broken = from_link(text) if text else (Experiment(), [])
    return kept.replace_all(found.entries), broken


def run(sides: Sequence[SideControls], tell: Callable[[str], Any]) -> list[Side]:
    """All in the same way, so that they can be set side by side: in parts as soon as one text is too long. That takes
    its time, in which `tell` is given a sentence on each."""
    whole = not any(is_long(side.lanes) for side in sides)
    found = list[Side]()
    for number, side in enumerate(sides, 1):
        if not whole:
            tell(f"Running {side.letter}, {number} of {len(sides)}: {effort(side)}.")
        found.append(run_side(side, run_whole if whole else run_in_pieces))
    return found


def effort(said: SideControls) -> str:
    config, tokens = said.checkpoint.model.config, sum(len(lane.pieces) for lane in said.lanes)
    layers = count_words(config.layers, "layer")
    if config.encoder:
        layers = f"{config.encoder.layers} + {layers}"
    heads = count_words(config.attention.heads, "head")
    return f"{said.title} reads {count_words(tokens, 'token')} in {layers} of {heads}"


def run_side(said: SideControls, make: Callable[[SideControls, Sequence[Edit]], Run]) -> Side:
    """Runs with all edits at once, since each further run takes its time."""
    on = {number: entry.edit for number, entry in enumerate(said.experiment.entries) if entry.on}
    fits, unfit = list[Edit](), dict[int, str]()
    try:
        found = make(said, list(on.values()))
    except MISFITS:  # one after the other, to know which
        found = make(said, ())
        for number, edit in on.items():
            try:
                found = make(said, [*fits, edit])
                fits.append(edit)
            except MISFITS as error:
                unfit[number] = sentence(error)
    left_out = (f"One edit does not fit here and is left out: {why}" for why in unfit.values())
    problem = " ".join(filter(None, [said.problem, *left_out]))
    known = {field.name: getattr(said, field.name) for field in fields(SideControls)} | {"problem": problem}
    return Side(**known, run=found, unfit=unfit, make=make)


def run_whole(said: SideControls, edits: Sequence[Edit]) -> Run:
    name, read, target = said.name, said.reading.read, said.reading.target
    before = library.traces.trace(name, read, (), target)
    trace = library.traces.trace(name, read, edits, target)
    return RunContext(name, said.checkpoint, trace, said.lanes, before)


def run_in_pieces(said: SideControls, edits: Sequence[Edit]) -> Run:
    """Runs from the run without edits, where that is kept."""
    model, read, target = said.checkpoint.model, said.reading.read, said.reading.target
    made, plain = LongRun(model, read, tuple(edits), target), LongRun(model, read, (), target)
    return long_context(said.name, said.checkpoint, said.lanes, made, {}, plain if edits else None)
