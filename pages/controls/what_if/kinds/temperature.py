"""Divides the scores of attention by a temperature."""

from typing import Any

from engine.edits import AttentionTemperature
from pages.controls.what_if.edit_fields import ATTENTION, number_field
from pages.controls.what_if.kind import EditKind
from views.what_if.edit_words import Terms, attention_words


def words(edit: Any, terms: Terms) -> str:
    return f"attention temperature {edit.value:g}, {attention_words(edit)}"


KIND = EditKind(
    name="temperature",
    place=1,
    title="Attention temperature",
    about="sharper or flatter",
    edits=(AttentionTemperature,),
    fields=(number_field("value", "temperature", 2.0, least=0.0), *ATTENTION),
    words=words,
)
