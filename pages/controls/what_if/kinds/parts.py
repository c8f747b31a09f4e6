"""Takes a sublayer, residual stream or norm out, or scales it."""

from typing import Any

from engine.edits import Scale
from pages.controls.what_if.edit_fields import (
    Field,
    Place,
    Values,
    blocks,
    number_field,
    parse_hook,
    select_stack,
    stack_of,
)
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind, Shown
from views.what_if.edit_words import Terms, chosen
from views.what_if.experiment import Editable


def first_part(model: Editable, place: Place) -> Values:
    own = model.stacks[-1].parts[min(place.layer, model.stacks[-1].layers - 1)]
    return {"hook": own.get("MLP") or next(iter(own.values())), "at": {}}


def choose_part(form: Form) -> None:
    """A sublayer, residual stream or norm of a block, by its own name."""
    hook = form.values["hook"]
    where = parse_hook(hook)
    own = stack_of(where.stack, form.model)
    layer = where.layer if isinstance(where.layer, int) else 0
    now = next((name for name, other in own.parts[layer].items() if other == hook), None)
    if len(form.model.stacks) > 1:
        own = select_stack(form, own)
    parts = own.parts[form.select("block", blocks(own.layers), min(layer, own.layers - 1), own.stack)]
    form.values["hook"] = parts[form.select("part", {name: name for name in parts}, now)]


def shows(edit: Shown, model: Editable) -> bool:
    hooks = {hook for own in model.stacks for block in own.parts for hook in block.values()}
    return edit["edit"] == "Scale" and not edit["at"] and edit["hook"] in hooks


def words(edit: Any, terms: Terms) -> str:
    done = "taken out" if edit.factor == 0 else f"× {edit.factor:g}"
    return f"{terms.place(edit.hook)}: {done}{chosen(edit.at, edit.hook, terms)}"


def everywhere(edit: Any, terms: Terms) -> dict[str, str]:
    return {"other": "zero"} if edit.factor == 0 else {}


KIND = EditKind(
    name="parts", place=4, title="Sublayer, residual, norm", about="take out or scale", edits=(Scale,),
    fields=(Field(choose_part, begin=first_part), number_field("factor", "multiply by (0 removes)", 0.0)),
    shows=shows, words=words, everywhere=everywhere,
)  # fmt: skip
