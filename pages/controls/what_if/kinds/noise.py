"""Adds noise to what a hook holds."""

from typing import Any

from engine.edits import AddNoise
from pages.controls.what_if.edit_fields import Place, Values, at_field, hook_field, number_field, whole_number_field
from pages.controls.what_if.kind import EditKind
from pages.controls.what_if.kinds.direction import has_vectors
from views.what_if.edit_words import Terms, chosen
from views.what_if.experiment import Editable


def blank(model: Editable, place: Place) -> Values:
    row = min(place.row, len(model.stacks[-1].pieces) - 1)
    return {"edit": "AddNoise", "scale": 1.0, "seed": 0, "at": {"pos": [row]}} | FIELDS[0].begin(model, place)


def words(edit: Any, terms: Terms) -> str:
    said = f"noise of standard deviation {edit.scale:g} (seed {edit.seed})"
    return f"{terms.place(edit.hook)}: {said}{chosen(edit.at, edit.hook, terms)}"


def everywhere(edit: Any, terms: Terms) -> dict[str, str]:
    """Finds what restores the prediction, of noise on one token's embedding."""
    at = edit.at.get("pos")
    one = at[0] if isinstance(at, list) and len(at) == 1 else at
    early = edit.hook.endswith(("embed.tokens", "blocks.0.resid_pre"))
    return {"other": "noise", "swapped": str(one), "draw": str(edit.seed)} if early and isinstance(one, int) else {}


FIELDS = (
    hook_field("resid_pre", has_vectors),
    number_field("scale", "standard deviation", 1.0, least=0.0),
    whole_number_field("seed", "seed", 0),
    at_field(),
)
KIND = EditKind(
    name="noise", place=13, title="Noise", about="on any value", edits=(AddNoise,), fields=FIELDS, blank=blank,
    words=words, everywhere=everywhere,
)  # fmt: skip
