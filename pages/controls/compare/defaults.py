"""What a comparison opens on: what its address says, what was compared last, or A beside something like it."""

from __future__ import annotations

import json
from typing import Any

import streamlit as st

from engine.edits.experiment import Experiment
from engine.runtime import library
from engine.runtime.limits import FIRST_MODEL
from engine.training.snapshots import snapshots
from pages.controls.model_input.browser_history import went_back
from pages.controls.model_input.model_input import EMPTY, EVERY_FIELD, EXAMPLES, KEPT, OPENED_LAST, example
from pages.controls.share.links import fit_address
from pages.controls.what_if.experiment import MADE

LETTERS = "ABCD"
RUN = "run: "  # before the name of a training run, among the models; its steps stand beside them
PICTURE = "own"  # a person's own picture as the bytes of its file, which no address holds
OWN = ("model", "step", *EVERY_FIELD, "edits", PICTURE)
NUMBERS = ("step", "picture", "given")
LAST = "compared"  # in the session state: what was compared last
LOOKED_AT = "looked at"  # in there: what the other pages looked at then
# What B reads where A reads the example of its model.
OTHER: dict[str, dict[str, Any]] = {
    "everyday": {"text": "The little girl was thirsty, so she drank a"},
    "stories": {"text": 'Anna gave the red ball to Max. "Thank you," said'},
    "induction": {"text": "b7Kx2qmTb7Kx9qm"},
    "stories-bert": {"text": "It began to [MASK]. Lily was not worried, because she had a swing."},
    "translate-en-fr": {"text": "The delighted cat sees a small white dog."},
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
        same = named is None or kept.get(key(letter, "model")) == named
        for field in OWN:
            own = key(letter, field)
            before = kept.get(own, default[field]) if same else default[field]
            if field == "edits" and went_back():
                before = ""  # else the address would have them
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
    kept = st.session_state.get(KEPT, {})
    named = st.session_state.get(OPENED_LAST) or kept.get("model", FIRST_MODEL)
    same = kept.get("model") == named
    fields = {field: kept[field] for field in EVERY_FIELD if field in kept} if same else values_of_example(named)
    return with_step({**empty(), **fields, "model": named})


def with_step(said: dict[str, Any]) -> dict[str, Any]:
    """Splits a model "run:NAME@STEP", as other pages write it, into the run and its step."""
    run, _, step = str(said.get("model", "")).removeprefix(library.RUN).partition("@")
    steps = snapshots().get(run, []) if str(said.get("model", "")).startswith(library.RUN) else []
    if not steps or (step and step not in map(str, steps)):
        return said
    return {**said, "model": f"{RUN}{run}", **({"step": int(step)} if step else {})}


def second_side(first: dict[str, Any]) -> dict[str, Any]:
    """B: the same under the edits that are being tried, or else a text that differs, where A's is an example."""
    experiment = st.session_state.get(MADE)
    if isinstance(experiment, Experiment) and experiment.edits:
        return {**first, "edits": format_edits(experiment)}
    plain = all(first[field] == value for field, value in values_of_example(first["model"]).items())
    return {**first, **(OTHER.get(first["model"], {}) if plain else {})}


def empty() -> dict[str, Any]:
    return {field: EMPTY.get(field, 0 if field == "step" else "") for field in OWN}


def values_of_example(name: str, other: bool = False) -> dict[str, Any]:
    """Fields that were written for a model; the `other` example is what B reads beside it, where there is one."""
    found = EXAMPLES.get(name) or example(name.replace(RUN, library.RUN, 1) if name.startswith(RUN) else name)
    return {field: found[field] for field in EVERY_FIELD if field in found} | (OTHER.get(name, {}) if other else {})


def parse_field(field: str, text: str) -> Any:
    """Value of a field of the address; a number that is malformed or has over 9 digits becomes the field's default."""
    if field not in NUMBERS:
        return text
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else EMPTY.get(field, 0)


def format_edits(experiment: Experiment) -> str:
    return json.dumps(experiment.to_value(), ensure_ascii=False) if experiment.entries else ""
