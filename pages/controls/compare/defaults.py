"""What a comparison opens on: what its address says, what was compared last, or A beside something like it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engine.checkpoints.run_steps import name_step, split_name
from engine.edits.experiment import Experiment
from engine.inputs.readers import kind
from engine.runtime import library
from pages.controls.compare.parameters import LAST, LETTERS, OWN, key, value
from pages.controls.model_input.model_input import EMPTY, EVERY_FIELD, EXAMPLES, TYPED, LastInput, example, find_carried
from pages.controls.state.history import is_drawn, went_back
from pages.controls.state.page_state import Here
from pages.controls.state.session import find_record
from pages.controls.what_if.experiment import EditTrial
from pages.controls.what_if.experiment_link import to_link
from server.settings import FIRST_MODEL

RUN = "run: "  # before the name of a training run, among the models; its steps stand beside them
# What B reads where A reads the example of its model.
OTHER: dict[str, dict[str, Any]] = {
    "everyday": {"text": "The little girl was hungry, so she ate an"},
    "stories": {"text": 'Anna gave the red ball to Max. "Thank you," said'},
    "induction": {"text": "b7Kx2qmTb7Kx9qm"},
    "tales-bert": {"text": "The king loved [MASK] wife."},
    "translate-en-fr": {"text": "She is wearing a red hat."},
    "infill": {"text": "How old[gMASK] he?"},
    "digits-vit": {"picture": 1},
    "digits-imagegpt": {"picture": 1},
    "compiled-brackets": {"text": "())())(()())"},
    "compiled-histogram": {"text": "b a c b d a"},
    "compiled-induction": {"text": "b c a b b c a"},
    "compiled-most-frequent": {"text": "a c b c b b"},
    "compiled-reversal": {"text": "b b c d d b"},
    "compiled-sorting": {"text": "3 2 3 1 3 2"},
}


@dataclass
class Sides:
    """Memory of the sides that no link holds, by their letters: their experiments, with the way back, a person's own
    pictures as the bytes of their files, and the fields of the last input that was not empty. `edited` is the letter of
    the side whose edits are open, `uploads` counts pictures. When the page was last seen, the other pages looked at
    `first`, and edits had led here so often."""

    experiments: dict[str, Experiment] = field(default_factory=dict)
    pictures: dict[str, bytes] = field(default_factory=dict)
    read: dict[str, dict[str, Any]] = field(default_factory=dict)
    edited: str = ""
    uploads: int = 0
    first: dict[str, Any] = field(default_factory=dict)
    led: int = 0


def open_sides(here: Here, said: Mapping[str, str]) -> None:
    """Opens the page on what its address says, with what goes along with that, else on what was compared last, else on
    A beside something like it."""
    kept, first, led = find_record(Sides), first_things(), find_record(EditTrial).compare_count
    anew, moved = led != kept.led or not kept.first, first != kept.first
    opens = led != kept.led or not (is_drawn(key("A", "model")) or went_back())
    kept.first, kept.led = first, led
    for letter in LETTERS:
        named = {field: said[key(letter, field)] for field in OWN if key(letter, field) in said}
        if opens and "model" in named:
            begin(here, letter, choose_beside(here, letter, named), named)
        elif opens and anew:
            begin(here, letter, {"A": first, "B": second_side(first)}.get(letter, empty()), named)
        elif opens and letter == "A" and moved:  # another page looks at something else by now
            begin(here, letter, first, named)
        offer_steps(here, letter)
        if letter in "CD" and not here.begin(key(letter, "model")):
            begin(here, letter, empty(), ())


def begin(here: Here, letter: str, values: Mapping[str, Any], named: Collection[str]) -> None:
    """Sets the fields of a side that a link has not `named`."""
    find_record(Sides).pictures.pop(letter, None)
    for name in OWN:
        if name not in named:
            here.set(key(letter, name), values[name])


def choose_beside(here: Here, letter: str, said: Mapping[str, str]) -> dict[str, Any]:
    """Chooses what goes along with the model that a link names: its example, or A's texts, where that is another model
    or edits change this one. A picture that it does not name is the first, which the page's own address does not
    name."""
    offer_steps(here, letter)
    model, step = with_step(said["model"])
    found = empty() | values_of_example(model) | {"step": LAST if step is None else step}
    if letter == "A" or said.keys() & set(EVERY_FIELD):
        return found | ({"second": "", "target": "", "span": ""} if "text" in said else {})
    own = model_name(model, here[key(letter, "step")] if "step" in said else step)
    first = model_name(here[key("A", "model")], here[key("A", "step")])
    if first == own and "edits" not in said:
        texts = OTHER.get(model, {})
    else:
        texts = {field: here[key("A", field)] for field in TYPED} if reads_alike(first, own) else {}
    return found | {field: text for field, text in texts.items() if field in TYPED}


def offer_steps(here: Here, letter: str) -> list[int]:
    """Lets a side have the steps that its run kept, the last one by itself."""
    model, step = with_step(here[key(letter, "model")])
    if model != here[key(letter, "model")]:
        here.set(key(letter, "model"), model)
        if step is not None:
            here.set(key(letter, "step"), step)
    steps = library.kept_steps(split_name(model)[0]) if model.startswith(RUN) else []
    options = {count: f"step {count:,}" for count in steps} or {LAST: "the last step"}
    here.adjust(key(letter, "step"), options=options, default=[*options][-1])
    return steps


def first_things() -> dict[str, Any]:
    """Model and text that the other pages look at, or what they would open on."""
    kept = find_carried().values
    named = kept.get("model", FIRST_MODEL)
    same = find_record(LastInput).model == named
    fields = {field: kept[field] for field in EVERY_FIELD if field in kept} if same else values_of_example(named)
    model, step = with_step(named)
    return empty() | fields | {"model": model, "step": LAST if step is None else step}


def with_step(named: str) -> tuple[str, int | None]:
    """Splits a model "run:NAME@STEP", as other pages write it, into the run and its step."""
    if not named.startswith(library.RUN):
        return named, None
    run, step = split_name(named)
    steps = library.kept_steps(run)
    if not steps or (step is not None and step not in map(str, steps)):
        return named, None
    return f"{RUN}{run}", None if step is None else int(step)


def model_name(model: str, step: int | None) -> str:
    """Name in the library of a side's model: a run's step, or the last that it kept where it has no such step."""
    if not model.startswith(RUN):
        return model
    run = split_name(model)[0]
    return name_step(run, step if step in library.kept_steps(run) else None)


def library_name(letter: str) -> str:
    """Name of a side's model in the library."""
    return model_name(value(letter, "model"), value(letter, "step"))


def link_sides(first: str, second: str) -> dict[str, str]:
    """Address of a comparison of two models of the library, on one text where both read it."""
    fields = values_of_example(first) if reads_alike(first, second) else {}
    return name_sides({"model": model, **fields} for model in (first, second))


def link_edits(model: str, fields: Mapping[str, Any], both: Sequence[Experiment]) -> dict[str, str]:
    """Address of a comparison of one model on one input under the edits of A, and under those of B."""
    return name_sides({"model": model, **fields, "edits": format_edits(one)} for one in both)


def link_texts(model: str, *texts: str) -> dict[str, str]:
    """Address of a comparison of one model on several texts."""
    return name_sides({"model": model, "text": text} for text in texts)


def name_sides(said: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Address of a comparison whose sides have these fields."""
    sides = zip("ABCD", said, strict=False)
    return {key(letter, field): str(one) for letter, side in sides for field, one in side.items()}


def reads_alike(*names: str) -> bool:
    """Tells whether what one of these models reads is for the others too."""
    try:
        kinds = {kind(library.checkpoint(name)) for name in names}
    except (ValueError, OSError):
        return True  # the side says why its model does not open
    return len(kinds) < 2 or kinds == {"text", "pair"}


def second_side(first: dict[str, Any]) -> dict[str, Any]:
    """B: the same under the edits that are being tried, or else a text that differs, where A's is an example."""
    experiment = find_record(EditTrial).experiment
    if experiment.edits:
        return {**first, "edits": format_edits(experiment)}
    plain = all(first[field] == value for field, value in values_of_example(first["model"]).items())
    return {**first, **(OTHER.get(first["model"], {}) if plain else {})}


def empty() -> dict[str, Any]:
    return {field: EMPTY.get(field, LAST if field == "step" else "") for field in OWN}


def values_of_example(name: str, other: bool = False) -> dict[str, Any]:
    """Fields that were written for a model; the `other` example is what B reads beside it, where there is one."""
    found = EXAMPLES.get(name) or example(model_name(name, None))
    return {field: found[field] for field in EVERY_FIELD if field in found} | (OTHER.get(name, {}) if other else {})


def format_edits(experiment: Experiment) -> str:
    """Writes them as a person can, where that is short enough for an address."""
    if not experiment.entries:
        return ""
    written = json.dumps(experiment.to_value(), ensure_ascii=False)
    return written if len(written) <= READABLE else to_link(experiment)


READABLE = 1_000  # characters of edits that stand in an address as they are written
