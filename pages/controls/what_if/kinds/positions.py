"""Swaps, drops or shifts positions of tokens."""

from typing import Any

from engine.edits import DropPositions, ShiftPositions, SwapPositions
from engine.plurals import count_words
from pages.controls.what_if.edit_fields import (
    STACK,
    Field,
    Place,
    Values,
    choose_block,
    own_stack,
    token_field,
    whole_number_field,
)
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind, EditVariants, edit_name, goes
from views.what_if.edit_words import Terms, attention_words
from views.what_if.experiment import Editable

WAYS = {
    "SwapPositions": "swap two tokens' positions",
    "DropPositions": "remove positions",
    "ShiftPositions": "shift positions",
}


def choose_tokens(form: Form) -> None:
    """The positions of several tokens; none stand for all."""
    values, own = form.values, own_stack(form)
    values["positions"] = form.tokens("tokens", own.pieces, values["positions"] or [], values["edit"]) or None


def choose_turned(form: Form) -> None:
    choose_block(form, among=own_stack(form).turned)


def fits(model: Editable) -> bool:
    return any(own.positions for own in model.stacks)


def start(way: str, count: int) -> Values:
    if way == "SwapPositions":
        return {"edit": way, "first": 0, "second": min(1, count - 1)}
    return {"edit": way, "positions": None} | ({"by": 1} if way == "ShiftPositions" else {})


def blank(model: Editable, place: Place) -> Values:
    own = model.stacks[-1]
    way = "SwapPositions" if len(own.pieces) > 1 else "DropPositions"
    return start(way, len(own.pieces)) | {"layer": None, "stack": own.stack}


def begin(way: str, form: Form) -> Values:
    return start(way, len(own_stack(form).pieces))


def words(edit: Any, terms: Terms) -> str:
    place = "" if edit.layer is None and edit.stack is None else f", {attention_words(edit)}"
    match edit:
        case SwapPositions(first=first, second=second):
            return f"{terms.token(first, edit.stack)} and {terms.token(second, edit.stack)} swap positions{place}"
        case ShiftPositions(by=by, positions=positions):
            far, way = count_words(abs(by), "position"), "on" if by >= 0 else "back"
            return f"{terms.tokens(positions, edit.stack)} stands {far} further {way}{place}"
    return f"{terms.tokens(edit.positions, edit.stack)} without position{place}"


FIELDS = (
    STACK,
    Field(choose_turned, when=lambda form: bool(own_stack(form).turned)),
    whole_number_field("by", "by", when=goes(edit_name, "ShiftPositions")),
    token_field("first", "one", when=goes(edit_name, "SwapPositions")),
    token_field("second", "other", when=goes(edit_name, "SwapPositions")),
    Field(choose_tokens, when=goes(edit_name, "DropPositions", "ShiftPositions")),
)
KIND = EditKind(
    name="positions", place=5, title="Positions", about="swap, drop, shift",
    edits=(SwapPositions, DropPositions, ShiftPositions), fields=FIELDS, blank=blank, words=words, fits=fits,
    ways=EditVariants(titles=WAYS, of=edit_name, begin=begin, kept_fields=("layer", "stack")),
    lacking="this model has none to change; it tells its tokens apart by their order under the mask alone.",
)  # fmt: skip
