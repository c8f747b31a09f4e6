"""Takes heads out."""

from typing import Any

from engine.edits import SilenceHeads
from pages.controls.what_if.edit_fields import Field, attention_of, choice_field, choose_attention, choose_one_block
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind
from views.what_if.edit_words import Terms, attention_words

HOW = {"zero": "their output is 0", "mean": "their mean over the text", "uniform": "they attend evenly"}


def choose_silenced(form: Form) -> None:
    values, own = form.values, attention_of(form.values, form.model)
    values["heads"] = form.heads("heads", own.heads, [0] if values["heads"] is None else values["heads"], own.label)
    if not values["heads"]:
        form.faults.append("Expected one head or more to silence, got none; choose those to silence.")


def words(edit: Any, terms: Terms) -> str:
    done = {"zero": "silenced", "mean": "replaced by their mean over the text", "uniform": "attend evenly"}
    return f"{attention_words(edit)}: {done[edit.how]}"


def everywhere(edit: Any, terms: Terms) -> dict[str, str]:
    """Every head by itself; that each attends evenly is no value to put in."""
    return {} if edit.how == "uniform" else {"other": edit.how, "value": "z"}


FIELDS = (
    Field(choose_attention, begin=lambda model, place: place.values | {"heads": [place.head]}),
    Field(choose_one_block),
    Field(choose_silenced),
    choice_field("how", "how", HOW, "zero"),
)
KIND = EditKind(
    name="silence", place=2, title="Silence heads", about="zero, mean, uniform", edits=(SilenceHeads,), fields=FIELDS,
    words=words, everywhere=everywhere,
)  # fmt: skip
