"""Adds a low-rank change to the weights."""

from typing import Any

from engine.edits import ApplyAdapter
from engine.edits.adapters import STRONGEST
from pages.controls.what_if.edit_fields import Field, choice_field
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind, Shown, is_one_of
from views.what_if.edit_words import Terms
from views.what_if.experiment import Editable


def choose_strength(form: Form) -> None:
    form.values["strength"] = form.slider("strength", form.values["strength"], 0.0, STRONGEST, 0.05)


def shows(edit: Shown, model: Editable) -> bool:
    return is_one_of((ApplyAdapter,), edit, model) and edit["adapter"] in model.adapters


def words(edit: Any, terms: Terms) -> str:
    return f"adapter “{edit.adapter.partition('~')[0]}” at {edit.strength:g}"


KIND = EditKind(
    name="adapter", place=10, title="Adapter", about="a low-rank change of the weights", edits=(ApplyAdapter,),
    fields=(
        choice_field("adapter", "adapter", lambda form: form.model.adapters),
        Field(choose_strength, begin=lambda model, place: {"strength": 0.0 if model.merged else 1.0}),
    ),
    fits=lambda model: bool(model.adapters), shows=shows, words=words, slider="strength",
    lacking="none that fits this model is here; open a folder with an adapter_config.json on Open a model, "
    "or train one on Adapt.",
)  # fmt: skip
