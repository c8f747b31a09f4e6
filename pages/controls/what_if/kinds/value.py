"""Sets or scales what a hook holds."""

import json
from collections.abc import Sequence
from typing import Any

from engine.edits import Replace, Scale
from pages.controls.what_if.edit_fields import Field, Place, Values, at_field, find_hook, hook_field, number_field
from pages.controls.what_if.edit_form import Form, read_numbers
from pages.controls.what_if.kind import EditKind, EditVariants, goes
from views.what_if.edit_words import Terms, chosen
from views.what_if.experiment import Editable

WAYS = {"number": "set to", "numbers": "set to several numbers", "scale": "multiply"}


def way(values: Values) -> str:
    return "scale" if values["edit"] == "Scale" else "numbers" if isinstance(values["value"], list) else "number"


def start(way: str) -> Values:
    if way == "scale":
        return {"edit": "Scale", "factor": 0.0}
    return {"edit": "Replace", "value": 0.0 if way == "number" else [0, 0]}


def choose_numbers(form: Form) -> None:
    """Several numbers, along the last axis of a hook that is not limited to one place."""
    values = form.values
    found = find_hook(values["hook"], form.model)
    free = [each for each in (found[1].axes if found else ()) if not isinstance(values["at"].get(each[0]), int)]
    along = f", along {free[-1][0]} ({free[-1][1]})" if free else ""
    numbers = form.parsed_text(f"numbers{along}", write_numbers(values["value"]), "0, 0.5, 1", read_numbers)
    values["value"] = values["value"] if numbers is None else numbers


def write_numbers(value: Sequence[Any]) -> str:
    """Numbers as `read_numbers` reads them; a plain list without its brackets."""
    text = json.dumps(value)
    return text[1:-1] if "[" not in text[1:] else text


def blank(model: Editable, place: Place) -> Values:
    hook, at = (field.begin(model, place) for field in (FIELDS[0], FIELDS[-1]))
    return start("number") | hook | at


def words(edit: Any, terms: Terms) -> str:
    put = f"{edit.value:g}" if isinstance(edit.value, float | int) else "given numbers"
    return f"{terms.place(edit.hook)}: replaced by {put}{chosen(edit.at, edit.hook, terms)}"


FIELDS = (
    hook_field("resid_post"),
    number_field("factor", "multiply by (0 removes)", 0.0, when=goes(way, "scale")),
    number_field("value", "number", 0.0, when=goes(way, "number")),
    Field(choose_numbers, when=goes(way, "numbers")),
    at_field(),
)
KIND = EditKind(
    name="value", place=9, title="Any value", about="set or scale what a hook holds", edits=(Replace, Scale),
    ways=EditVariants(titles=WAYS, of=way, begin=lambda way, form: start(way), kept_fields=("hook", "at")),
    fields=FIELDS, blank=blank, words=words,
)  # fmt: skip
