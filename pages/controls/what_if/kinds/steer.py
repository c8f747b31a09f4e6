"""Adds the difference of two other runs."""

from typing import Any

from engine.edits import Steer
from pages.controls.what_if.edit_fields import (
    Place,
    Values,
    at_field,
    choice_field,
    hook_field,
    number_field,
    read_source,
    source_field,
)
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind, begin_fields
from views.what_if.edit_words import Terms, chosen, source_words
from views.what_if.experiment import Editable, EditableValue


def by_token(value: EditableValue) -> bool:
    """Tells whether a value has one vector for each token."""
    axes = [axis for axis, _ in value.axes]
    return axes[:1] == ["pos"] and "key" not in axes


def read_at(form: Form) -> dict[str, str]:
    last, mean = ("place", "places") if form.model.pictures else ("token", "tokens")
    return {"last": f"at the last {last}", "mean": f"as the mean over all {mean}"}


def blank(model: Editable, place: Place) -> Values:
    values = begin_fields(Steer, FIELDS, model, place)
    if model.pictures:
        values |= {"away": {"picture": 0}, "factor": 1.0}
    return values | ({"read": "mean"} if model.pictures or model.closed else {})


def read(edit: Values, terms: Terms) -> Values:
    return edit | {name: read_source(edit[name]) for name in ("toward", "away")}


def words(edit: Any, terms: Terms) -> str:
    apart = f"{source_words(edit.toward, terms)} − {source_words(edit.away, terms)}"
    return f"{terms.place(edit.hook)}: + {edit.factor:g} × ({apart}){chosen(edit.at, edit.hook, terms)}"


FIELDS = (
    hook_field("resid_pre", by_token),
    source_field("toward", "toward", "a text such as: Love"),
    source_field("away", "away from", "a text such as: Hate"),
    number_field("factor", "times", 4.0),
    choice_field("read", "read", read_at, "last"),
    at_field("added at"),
)
KIND = EditKind(
    name="steer", place=8, title="Steering vector", about="the difference of two runs", edits=(Steer,), fields=FIELDS,
    blank=blank, read=read, words=words,
)  # fmt: skip
