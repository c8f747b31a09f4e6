"""What a comparison opens on: what its address says, what was compared last, or A beside something like it."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from engine.checkpoints.run_steps import name_step, split_name
from engine.edits.experiment import Experiment
from engine.inputs.readers import kind
from engine.runtime import library
from engine.runtime.limits import FIRST_MODEL
from pages.controls.model_input.model_input import EMPTY, EVERY_FIELD, EXAMPLES, Read, example, find_carried
from pages.controls.share.links import fit_address
from pages.controls.state.history import went_back
from pages.controls.state.session import find_record
from pages.controls.what_if.experiment import LEFT, MADE

LETTERS = "ABCD"
RUN = "run: "  # before the name of a training run, among the models; its steps stand beside them
PICTURE = "own"  # a person's own picture as the bytes of its file, which no address holds
OWN = ("model", "step", *EVERY_FIELD, "edits", PICTURE)
NUMBERS = ("step", "picture", "given")
LAST = "compared"  # in the session state: what was compared last
CAME = "came from what if"  # there too: how often edits have led here
LOOKED_AT = "looked at"  # in there: what the other pages looked at then
# What B reads where A reads the example of its model.
OTHER: dict[str, dict[str, Any]] = {
    "everyday": {"text": "The little girl was hungry, so she ate an"},
    "stories": {"text": 'Anna gave the red ball to Max. "Thank you," said'},
    "induction": {"text": "b7Kx2qmTb7Kx9qm"},
    "stories-bert": {"text": "It began to [MASK]. Lily was not worried, because she had a swing."},
    "translate-en-fr": {"text": "She is wearing a red hat."},
    "infill": {"text": "Once upon a time, there was a boy named[gMASK]. Tom loved to paint."},
    "digits-vit": {"picture": 1},
    "digits-imagegpt": {"picture": 1},
}


def key(letter: str, field: str) -> str:
    return f"{letter.lower()}_{field}"


def begin() -> None:
    """Values that the page opens on: what the address says, else what was compared last, else A beside something like
    it."""
    state, address = st.session_state, st.query_params
    if state.get(LEFT, 0) != state.get(CAME, 0):
        state[CAME] = state[LEFT]
        for own in (LAST, *(key(letter, field) for letter in LETTERS for field in OWN)):
            state.pop(own, None)
    here = key("A", "model") in state and key("B", "model") in state
    if here and not (went_back() and key("A", "model") in address):
        return
    kept: dict[str, Any] = state.get(LAST, {})
    first = first_things()
    if kept and first != kept.get(LOOKED_AT, first):  # another page looks at something else by now: A does too
        kept = {own: value for own, value in kept.items() if not own.startswith("a_")}
    start = {"A": first, "B": second_side(first)}
    for letter in LETTERS:
        said = with_step({own: text for own in OWN if (text := address.get(key(letter, own))) is not None})
        named = said.get("model")
        if letter not in start and named is None and key(letter, "model") not in kept:
            continue
        default = start.get(letter, first)
        if named is not None:
            default = {**empty(), "model": named, **values_of_example(named)}
            default |= {field: "" for field in ("second", "target", "span") if "text" in said}
            unsaid = letter != "A" and not said.keys() & set(EVERY_FIELD)
            if unsaid and reads_alike(library_name("A"), model_name(named, None)):
                default |= {field: state[key("A", field)] for field in (*EVERY_FIELD, PICTURE)}
        same = named is None or kept.get(key(letter, "model")) == named
        for field in OWN:
            own = key(letter, field)
            before = kept.get(own, default[field]) if same else default[field]
            if (field == "edits" and went_back()) or (field == "step" and named is not None):
                before = default[field]  # else the address would have it
            state[own] = parse_field(field, str(said[field])) if field in said and field != PICTURE else before


def remember(said: dict[str, str]) -> None:
    """Puts what the sides are into the address, whatever they opened on, but for texts that are too long for one."""
    address, said = st.query_params, fit_address(said)
    mine = {key(letter, field) for letter in LETTERS for field in OWN}
    for own in mine & set(address) - set(said):
        del address[own]
    if fresh := {own: text for own, text in said.items() if address.get(own) != text}:
        address.update(fresh)  # at once: each message is an entry of the browser's history


def first_things() -> dict[str, Any]:
    """Model and text that the other pages look at, or what they would open on."""
    kept = find_carried().values
    named = kept.get("model", FIRST_MODEL)
    same = find_record(Read).model == named
    fields = {field: kept[field] for field in EVERY_FIELD if field in kept} if same else values_of_example(named)
    return with_step({**empty(), **fields, "model": named})


def with_step(said: dict[str, Any]) -> dict[str, Any]:
    """Splits a model "run:NAME@STEP", as other pages write it, into the run and its step."""
    named = str(said.get("model", ""))
    if not named.startswith(library.RUN):
        return said
    run, step = split_name(named)
    steps = library.kept_steps(run)
    if not steps or (step is not None and step not in map(str, steps)):
        return said
    return {**said, "model": f"{RUN}{run}", **({} if step is None else {"step": int(step)})}


def model_name(model: str, step: int | None) -> str:
    """Name in the library of a side's model: a run's step, or the last that it kept where it has no such step."""
    if not model.startswith(RUN):
        return model
    run = split_name(model)[0]
    return name_step(run, step if step in library.kept_steps(run) else None)


def library_name(letter: str) -> str:
    """Name of a side's model in the library."""
    return model_name(st.session_state[key(letter, "model")], st.session_state.get(key(letter, "step")))


def link_sides(first: str, second: str) -> dict[str, str]:
    """Address of a comparison of two models of the library, on one text where both read it."""
    fields = values_of_example(first) if reads_alike(first, second) else {}
    sides = {"A": {"model": first, **fields}, "B": {"model": second, **fields}}
    return {key(letter, field): str(value) for letter, said in sides.items() for field, value in said.items()}


def reads_alike(*names: str) -> bool:
    """Tells whether what one of these models reads is for the others too."""
    try:
        kinds = {kind(library.checkpoint(name)) for name in names}
    except (ValueError, OSError):
        return True  # the side says why its model does not open
    return len(kinds) < 2 or kinds == {"text", "pair"}


def second_side(first: dict[str, Any]) -> dict[str, Any]:
    """B: the same under the edits that are being tried, or else a text that differs, where A's is an example."""
    experiment = st.session_state.get(MADE)
    if isinstance(experiment, Experiment) and experiment.edits:
        return {**first, "edits": format_edits(experiment)}
    plain = all(first[field] == value for field, value in values_of_example(first["model"]).items())
    return {**first, **(OTHER.get(first["model"], {}) if plain else {})}


def empty() -> dict[str, Any]:
    return {field: EMPTY.get(field, None if field == "step" else "") for field in OWN}


def values_of_example(name: str, other: bool = False) -> dict[str, Any]:
    """Fields that were written for a model; the `other` example is what B reads beside it, where there is one."""
    found = EXAMPLES.get(name) or example(model_name(name, None))
    return {field: found[field] for field in EVERY_FIELD if field in found} | (OTHER.get(name, {}) if other else {})


def parse_field(field: str, text: str) -> Any:
    """Value of a field of the address; a number that is malformed or has over 9 digits becomes the field's default."""
    if field not in NUMBERS:
        return text
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else empty()[field]


def format_edits(experiment: Experiment) -> str:
    return json.dumps(experiment.to_value(), ensure_ascii=False) if experiment.entries else ""
