"""Lets matrices have the weights that a scheme of few bits leaves of theirs."""

from typing import Any

from engine.edits import QuantiseMaps
from engine.edits.quantise import WRITTEN
from engine.model.quantised import SCHEMES
from engine.plurals import count_words
from pages.controls.what_if.edit_fields import Field, Place, Values, choice_field
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind
from views.what_if.edit_words import Terms
from views.what_if.experiment import Editable

NAMES = "matrices: attn.q, blocks.0.mlp.out, …"
SAID = {name: f"{name}, {SCHEMES[name].bits:g} bits" for name in WRITTEN}


def read_names(text: str) -> list[str]:
    names = [name for name in (one.strip() for one in text.split(",")) if name]
    if not names:
        raise ValueError("name one, such as attn.q")
    return names


def choose_names(form: Form) -> None:
    now = ", ".join(form.values["names"])
    names = form.parsed_text(NAMES, now, "attn.q, attn.k, mlp.out", read_names)
    form.values["names"] = form.values["names"] if names is None else names


def blank(model: Editable, place: Place) -> Values:
    return {"edit": "QuantiseMaps", "scheme": "Q4_0", "names": ["attn.q", "attn.k", "attn.v", "attn.out"]}


def words(edit: Any, terms: Terms) -> str:
    few = ", ".join(edit.names) if len(edit.names) <= 3 else count_words(len(edit.names), "matrix", "matrices")
    return f"{few} at {edit.scheme}, {SCHEMES[edit.scheme].bits:g} bits"


FIELDS = (choice_field("scheme", "scheme", SAID, "Q4_0"), Field(choose_names))
KIND = EditKind(
    name="quantise", place=14, title="Quantise", about="weights of few bits", edits=(QuantiseMaps,), fields=FIELDS,
    blank=blank, words=words,
)  # fmt: skip
