"""Fields of the form of an edit: widgets that write what is chosen into the form's values.

Those values are what engine/edits reads from JSON, but that texts stand where it has ids, as
views/what_if/edit_sources.py turns them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pages.controls.what_if.edit_form import Form, ranges, read_ranges
from views.what_if.experiment import Editable, EditableAttention, EditableStack, EditableValue

ALL, OUTSIDE, SAME = "every block", "outside of the blocks", "the same"
PLACE = ("layer", "heads", "stack", "cross")  # fields that say where in the model
WHOLE = 64  # tokens up to which a whole matrix is drawn, as every cell of it stands in the address
NUMBERED = re.compile(r"picture (\d+)")  # as views/what_if/edit_sources.py names a shipped one
INSIDE = re.compile(r"(?:(\w+)\.)?blocks\.(\d+|\*)\.(.+)")
OF_A_STACK = re.compile(r"(?:(encoder|decoder)\.)?(.+)")
ALL_HEADS = "heads (all if none is chosen)"

Values = dict[str, Any]
Options = Mapping[Any, str]


class Place(NamedTuple):
    """Attention, block, head and reading token that the page looks at."""

    attention: EditableAttention
    layer: int
    head: int
    row: int

    @property
    def values(self) -> Values:
        return {"layer": self.layer, "heads": None, "stack": self.attention.stack, "cross": self.attention.cross}


def place_of(model: Editable, address: Mapping[str, Any]) -> Place:
    """The place that an address names, which a person may have written, as far as the model has it."""
    last = model.stacks[-1]
    side = address.get("side", last.stack)
    crosses = address.get("focus") == "cross_attn"
    found = (one for one in model.attentions if one.stack == side and one.cross == crosses)
    own = next(found, model.attentions[-2 if len(model.stacks) > 1 else -1])
    layer, head, row = (index(address.get(name)) for name in ("layer", "head", "query"))
    rows = len(own.rows)
    return Place(
        own,
        min(layer or 0, own.layers - 1),
        min(head or 0, own.heads - 1),
        row if row is not None and row < rows else rows - 1,
    )


def index(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


@dataclass(frozen=True)
class Field:
    """`draw` draws a field, which begins with the values `begin`; `when` tells of a form whether it has the field."""

    draw: Callable[[Form], object]
    when: Callable[[Form], bool] = lambda _: True
    begin: Callable[[Editable, Place], Values] = lambda model, place: {}


def number_field(name: str, label: str, begin: float, least: float | None = None, **options: Any) -> Field:
    def draw(form: Form) -> None:
        form.values[name] = form.number(label, form.values[name], least=least)

    return Field(draw, begin=lambda model, place: {name: begin}, **options)


def whole_number_field(name: str, label: str, *least: int, **options: Any) -> Field:
    def draw(form: Form) -> None:
        bounds = (*least, 2**31) if least else ()
        form.values[name] = form.whole_number(label, form.values[name], *bounds)

    return Field(draw, **options)


def choice_field(
    name: str, label: str, options: Options | Callable[[Form], Options], begin: Any = None, **more: Any
) -> Field:
    """Field for one of several options, which may depend on the form."""

    def draw(form: Form) -> None:
        offered = options(form) if callable(options) else options
        about = (form.draft.freed,) if name == "free" else ()  # which the painter says as well
        form.values[name] = form.select(label, offered, form.values[name], *about)

    return Field(draw, begin=lambda model, place: {name: begin}, **more)


# --- Where in the model ---


def attention_of(values: Mapping[str, Any], model: Editable) -> EditableAttention:
    found = (one for one in model.attentions if (one.stack, one.cross) == (values["stack"], values["cross"]))
    return next(found, model.attentions[-1])


def stack_of(name: str | None, model: Editable) -> EditableStack:
    return next((one for one in model.stacks if one.stack == name), model.stacks[-1])


def own_stack(form: Form) -> EditableStack:
    return stack_of(form.values["stack"], form.model)


def select_stack(form: Form, own: EditableStack) -> EditableStack:
    stacks = form.model.stacks
    return stack_of(form.select("stack", {one.stack: str(one.stack) for one in stacks}, own.stack), form.model)


def blocks(layers: int) -> dict[Any, str]:
    return {layer: f"block {layer + 1} of {layers}" for layer in range(layers)}


def choose_attention(form: Form) -> None:
    """The attention; of another one nothing is painted yet."""
    values, model = form.values, form.model
    if len(model.attentions) < 2:
        return
    now = model.attentions.index(attention_of(values, model))
    chosen = form.select("attention", {i: one.label for i, one in enumerate(model.attentions)}, now)
    if chosen != now:
        own = model.attentions[chosen]
        layer = values["layer"]
        values |= {"stack": own.stack, "cross": own.cross, "heads": None}
        values["layer"] = None if layer is None else min(layer, own.layers - 1)
        values |= {name: [] for name in ("cells", "rows", "columns", "weights") if name in values}
        values |= {name: None for name in ("allowed", "drawn") if name in values}


def choose_stack(form: Form) -> None:
    if len(form.model.stacks) > 1:
        form.values["stack"] = select_stack(form, own_stack(form)).stack


def choose_block(form: Form, every: bool = True, among: Sequence[int] | None = None) -> None:
    """`among` are the blocks that are offered, None: each."""
    named = blocks(own_stack(form).layers)
    offered = named if among is None else {layer: named[layer] for layer in among}
    options = {ALL: ALL, **offered} if every else offered
    now = form.values["layer"]
    chosen = form.select("block", options, ALL if now is None else now, form.values["stack"])
    form.values["layer"] = None if chosen == ALL else chosen


def choose_one_block(form: Form) -> None:
    choose_block(form, every=False)


def choose_heads(form: Form) -> None:
    own = attention_of(form.values, form.model)
    form.values["heads"] = form.heads(ALL_HEADS, own.heads, form.values["heads"] or [], own.label) or None


ATTENTION = (
    Field(choose_attention, begin=lambda model, place: place.values),
    Field(choose_block),
    Field(choose_heads),
)
STACK = Field(choose_stack, begin=lambda model, place: {"stack": model.stacks[-1].stack})


def paint_field(mode: str, label: str, **options: Any) -> Field:
    """The matrix of an attention, painted by hand."""

    def draw(form: Form) -> None:
        form.paint(mode, f"{label}{shown_head(form.values)}", attention_of(form.values, form.model))

    return Field(draw, **options)


def shown_head(values: Mapping[str, Any]) -> str:
    """ ", shown for block 1 head 1": whose matrix is painted on where the edit is of several."""
    if values["layer"] is not None and len(values["heads"] or ()) == 1:
        return ""
    head = (values["heads"] or [0])[0]
    return f", shown for block {(values['layer'] or 0) + 1} head {head + 1}"


def drawable(own: EditableAttention) -> bool:
    return max(len(own.rows), len(own.keys)) <= WHOLE


# --- Tokens ---


def token_field(name: str, label: str, **options: Any) -> Field:
    """The position of one token."""

    def draw(form: Form) -> None:
        form.values[name] = form.token(label, own_stack(form).pieces, form.values[name])

    return Field(draw, begin=lambda model, place: {name: 0}, **options)


# --- Values of a hook ---


class HookName(NamedTuple):
    """A hook's name. `layer` is "*" for every block's and None for no block's."""

    stack: str | None
    layer: int | str | None
    part: str


def parse_hook(hook: str) -> HookName:
    if inside := INSIDE.fullmatch(hook):
        return HookName(inside[1], "*" if inside[2] == "*" else int(inside[2]), inside[3])
    named = OF_A_STACK.fullmatch(hook)
    return HookName(named[1], None, named[2]) if named else HookName(None, None, hook)


def find_hook(name: str, model: Editable) -> tuple[EditableStack, EditableValue, HookName] | None:
    """A hook of this model by its name, None where it has none."""
    where = parse_hook(name)
    own = stack_of(where.stack, model)
    if where.layer is None:
        found = next((one for one in own.outer if one.hook == name), None)
    elif own.stack == where.stack and (where.layer == "*" or int(where.layer) < own.layers):
        found = next((one for one in own.inner if one.part == where.part), None)
        found = found if found and (where.layer == "*" or int(where.layer) in found.layers) else None
    else:
        found = None
    return (own, found, where) if found else None


def hook_field(part: str, suits: Callable[[EditableValue], bool] = lambda _: True) -> Field:
    """A hook among those that suit; it begins with `part` of the block that is looked at."""

    def begin(model: Editable, place: Place) -> Values:
        own = model.stacks[-1]
        return {"hook": f"{own.prefix}blocks.{min(place.layer, own.layers - 1)}.{part}"}

    def draw(form: Form) -> None:
        where = parse_hook(form.values["hook"])
        own = stack_of(where.stack, form.model)
        if len(form.model.stacks) > 1:
            own = select_stack(form, own)
        inner, outer = ([one for one in some if suits(one)] for some in (own.inner, own.outer))
        places = {"*": ALL, **blocks(own.layers), **({OUTSIDE: OUTSIDE} if outer else {})}
        place = form.select("block", places, OUTSIDE if where.layer is None else where.layer, own.stack)
        layer = None if place == OUTSIDE else place
        options = outer if layer is None else inner if layer == "*" else [one for one in inner if layer in one.layers]
        parts = {one.part: one.part for one in options}
        now = where.part if where.part in parts else options[0 if layer is None else -1].part
        chosen = form.select("value", parts, now, own.stack)
        held = next(one for one in options if one.part == chosen)
        form.values["hook"] = held.hook if layer is None else f"{own.prefix}blocks.{layer}.{chosen}"

    return Field(draw, begin=begin)


def at_field(verb: str = "at") -> Field:
    """Part of a hook: heads and tokens to press, places on its other axes as numbers.

    What was chosen stays chosen at another hook, as far as that has the same axes: it may have been pressed before the
    form had heard of that hook.
    """

    def draw(form: Form) -> None:
        values, model = form.values, form.model
        found = find_hook(values["hook"], model)
        if not found:
            return
        own, held, where = found
        at: Values = {axis: i for axis, i in values["at"].items() if axis in dict(held.axes)}
        keys = model.stacks[0].pieces if where.part.startswith("cross_attn") else own.pieces
        pieces = {"pos": own.pieces, "key": keys}
        for axis, size in held.axes:
            now = sorted(i + size if i < 0 else i for i in as_list(at.get(axis)))
            if axis == "head":
                chosen: list[int] | None = form.heads(ALL_HEADS, size, now)
            elif len(pieces.get(axis, ())) == size:
                label = verb if axis == "pos" else "of what is viewed at"
                chosen = form.tokens(label, pieces[axis], now)
            else:
                reads = lambda text, size=size: read_ranges(text, size)  # noqa: E731
                chosen = form.parsed_text(axis, ranges(now), f"all {size}", reads, size)
            if chosen is not None and sorted(chosen) != now:
                at.pop(axis, None)
                at |= {axis: sorted(chosen)} if chosen else {}
        values["at"] = at

    return Field(draw, begin=lambda model, place: {"at": {}})


def as_list(indices: Any) -> list[int]:
    return indices if isinstance(indices, list) else [] if indices is None else [indices]


# --- Other runs ---


def what_others(model: Editable) -> str:
    return "picture" if model.pictures else "text"


def blank_source(model: Editable) -> Values:
    return {"picture": min(1, model.pictures - 1)} if model.pictures else {"text": ""}


def read_source(source: Any) -> Any:
    """A picture that has a number is chosen by it; any other stays what it is."""
    found = NUMBERED.fullmatch(str(source.get("name", ""))) if isinstance(source, Mapping) else None
    return {"picture": int(found[1])} if found else source


def source_field(name: str, label: str, hint: str, **options: Any) -> Field:
    """The text or the picture of another run; {what} in a label is which of both."""

    def draw(form: Form) -> None:
        values, model = form.values, form.model
        titled, source = label.format(what=what_others(model)), values[name]
        if not model.pictures:
            text = form.text(titled, str(source.get("text", "")), hint, name)
            if text != source.get("text", ""):
                values[name] = {"text": text}  # one that was not touched keeps its ids
            return
        numbered = isinstance(source.get("picture"), int)
        now = "number" if numbered else "shown" if "picture" in source else "kept"
        ways = {"number": "a picture by its number", "shown": f"the one shown now: {model.shown}"}
        if now == "kept":
            ways["kept"] = str(source.get("name") or "a picture that the link brought")
        way = form.select(titled, ways, now, name)
        if way != now:
            source = {"number": blank_source(model), "shown": {"picture": None, "name": model.shown}}.get(way, source)
        if way == "number":
            most = model.pictures - 1
            source = {"picture": form.whole_number(f"number, 0 to {most}", source["picture"], 0, most, name) or 0}
        values[name] = source

    return Field(draw, begin=lambda model, place: {name: blank_source(model)}, **options)
