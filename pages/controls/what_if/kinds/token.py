"""Exchanges the embedding of a token for that of another, or mixes the two."""

from typing import Any

from engine.checkpoints import Checkpoint
from engine.edits import ChangeToken
from pages.controls.what_if.edit_fields import STACK, Field, Values, number_field, token_field
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind
from views.what_if.edit_sources import token
from views.what_if.edit_words import Terms
from views.what_if.experiment import Editable


def type_token(form: Form) -> None:
    """Draws a field for one token of the vocabulary, by its text; one that was not edited keeps its id."""
    now = form.values["token"]["text"]
    text = form.text("becomes", now, "one token")
    if text != now:
        form.values["token"] = {"text": text}


def fits(model: Editable) -> bool:
    return any(own.tokens for own in model.stacks)


def read(edit: Values, terms: Terms) -> Values:
    return edit | {"token": {"id": edit["token"], "text": terms.read([edit["token"]]).strip()}}


def write(values: Values, checkpoint: Checkpoint) -> Values:
    """Raises ValueError, with a sentence, for a text that is not one token."""
    return values | {"token": token(values["token"], checkpoint)}


def words(edit: Any, terms: Terms) -> str:
    old, new = terms.token(edit.position, edit.stack), f"“{terms.read([edit.token]).strip()}”"
    return f"{old} becomes {new}" if edit.share == 1 else f"{old} becomes {100 * edit.share:g} % {new}"


def everywhere(edit: Any, terms: Terms) -> dict[str, str]:
    becomes = terms.read([edit.token]).strip()
    return {"other": "token", "swapped": str(edit.position), "becomes": becomes} if edit.share == 1 else {}


FIELDS = (
    STACK,
    Field(type_token, begin=lambda model, place: {"token": {"text": ""}}),
    number_field("share", "mix (1 = replace)", 1.0),
    token_field("position", "token"),
)
KIND = EditKind(
    name="token", place=6, title="Token", about="exchange or mix an embedding", edits=(ChangeToken,), fields=FIELDS,
    fits=fits, read=read, write=write, words=words, everywhere=everywhere,
    lacking="this model reads patches and has no tokens to exchange; Patch puts another picture’s patch there: "
    "its value embed.patches, outside of the blocks.",
)  # fmt: skip
