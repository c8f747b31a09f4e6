"""The kinds of edits that a person can make: what each is called, where it begins, and the fields of its form.

A form's values are what engine/edits reads from JSON, but that texts stand where it has ids, as
views/what_if/edit_sources.py turns them.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from engine.edits.adapters import STRONGEST
from pages.controls.what_if.edit_form import Form, ranges, read_numbers, read_ranges
from views.what_if.experiment import Editable, EditableAttention, EditableStack, EditableValue

ALL, OUTSIDE, SAME = "every block", "outside of the blocks", "the same"
PLACE = ("layer", "heads", "stack", "cross")  # fields that say where in the model
WHOLE = 64  # tokens up to which a whole matrix is drawn, as every cell of it stands in the address
NUMBERED = re.compile(r"picture (\d+)")  # as views/what_if/edit_sources.py names a shipped one
INSIDE = re.compile(r"(?:(\w+)\.)?blocks\.(\d+|\*)\.(.+)")
OF_A_STACK = re.compile(r"(?:(encoder|decoder)\.)?(.+)")

Values = dict[str, Any]


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


class Kind(ABC):
    """A kind of edit. `lacking` says why a model that it does not fit cannot be edited so."""

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    lacking: ClassVar[str] = ""

    def fits(self, model: Editable) -> bool:
        return True

    @abstractmethod
    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        """Tells whether the form shows this edit whole."""

    @abstractmethod
    def blank(self, model: Editable, place: Place) -> Values:
        """Returns the values that the form begins with."""

    @abstractmethod
    def draw(self, form: Form) -> None:
        """Draws the fields, which write into the form's values."""

    def read(self, edit: Values) -> Values:
        """The form's values of an edit that it `shows`."""
        return edit

    def edit(self, values: Values) -> Values:
        """The edit that the form's values say."""
        return values


# --- Fields that several kinds ask for ---


def attention_of(values: Mapping[str, Any], model: Editable) -> EditableAttention:
    found = (one for one in model.attentions if (one.stack, one.cross) == (values["stack"], values["cross"]))
    return next(found, model.attentions[-1])


def stack_of(name: str | None, model: Editable) -> EditableStack:
    return next((one for one in model.stacks if one.stack == name), model.stacks[-1])


def choose_attention(form: Form) -> EditableAttention:
    """The attention; of another one nothing is painted yet."""
    values, model = form.values, form.model
    own = attention_of(values, model)
    if len(model.attentions) < 2:
        return own
    now = model.attentions.index(own)
    chosen = form.select("attention", {i: one.label for i, one in enumerate(model.attentions)}, now)
    if chosen != now:
        own = model.attentions[chosen]
        layer = values["layer"]
        values |= {"stack": own.stack, "cross": own.cross, "heads": None}
        values["layer"] = None if layer is None else min(layer, own.layers - 1)
        values |= {name: [] for name in ("cells", "rows", "columns", "weights") if name in values}
        values |= {name: None for name in ("allowed", "drawn") if name in values}
    return own


def choose_stack(form: Form) -> EditableStack:
    own = stack_of(form.values["stack"], form.model)
    if len(form.model.stacks) > 1:
        named = {one.stack: str(one.stack) for one in form.model.stacks}
        own = stack_of(form.select("stack", named, own.stack), form.model)
        form.values["stack"] = own.stack
    return own


def blocks(layers: int) -> dict[Any, str]:
    return {layer: f"block {layer + 1} of {layers}" for layer in range(layers)}


def choose_block(form: Form, layers: int, every: bool = True) -> None:
    options = {ALL: ALL, **blocks(layers)} if every else blocks(layers)
    now = form.values["layer"]
    chosen = form.select("block", options, ALL if now is None else now, form.values["stack"])
    form.values["layer"] = None if chosen == ALL else chosen


ALL_HEADS = "heads (all if none is chosen)"


def choose_heads(form: Form, own: EditableAttention) -> None:
    form.values["heads"] = form.heads(ALL_HEADS, own.heads, form.values["heads"] or [], own.label) or None


def shown_head(values: Mapping[str, Any]) -> str:
    """", shown for block 1 head 1": whose matrix is painted on where the edit is of several."""
    if values["layer"] is not None and len(values["heads"] or ()) == 1:
        return ""
    head = (values["heads"] or [0])[0]
    return f", shown for block {(values['layer'] or 0) + 1} head {head + 1}"


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
    else:
        found = None
    return (own, found, where) if found else None


def choose_hook(form: Form, label: str, suits: Callable[[EditableValue], bool] = lambda value: True) -> None:
    """Fields that choose a hook among those that suit."""
    values, model = form.values, form.model
    where = parse_hook(values["hook"])
    own = stack_of(where.stack, model)
    if len(model.stacks) > 1:
        own = stack_of(form.select("stack", {one.stack: str(one.stack) for one in model.stacks}, own.stack), model)
    inner, outer = ([one for one in some if suits(one)] for some in (own.inner, own.outer))
    places = {"*": ALL, **blocks(own.layers), **({OUTSIDE: OUTSIDE} if outer else {})}
    place = form.select("block", places, OUTSIDE if where.layer is None else where.layer, own.stack)
    layer = None if place == OUTSIDE else place
    options = outer if layer is None else inner
    parts = {one.part: one.part for one in options}
    part = where.part if where.part in parts else options[0 if layer is None else -1].part
    part = form.select(label, parts, part, own.stack)
    held = next(one for one in options if one.part == part)
    values["hook"] = held.hook if layer is None else f"{own.prefix}blocks.{layer}.{part}"


def choose_part(form: Form, verb: str) -> None:
    """Draws a field for each axis of a hook: heads and tokens to press, the others as numbers.

    What was chosen stays chosen at another hook, as far as that has the same axes: it may have been pressed before the
    form had heard of that hook.
    """
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


def choose_source(form: Form, name: str, label: str, hint: str) -> None:
    """Fields for the text or the picture of another run, which the form's values have by `name`."""
    values, model = form.values, form.model
    source = values[name]
    if not model.pictures:
        text = form.text(label, str(source.get("text", "")), hint, name)
        if text != source.get("text", ""):
            values[name] = {"text": text}  # one that was not touched keeps its ids
        return
    numbered = isinstance(source.get("picture"), int)
    now = "number" if numbered else "shown" if "picture" in source else "kept"
    ways = {"number": "a picture by its number", "shown": f"the one shown now: {model.shown}"}
    if now == "kept":
        ways["kept"] = str(source.get("name") or "a picture that the link brought")
    way = form.select(label, ways, now, name)
    if way != now:
        source = {"number": blank_source(model), "shown": {"picture": None, "name": model.shown}}.get(way, source)
    if way == "number":
        number = form.whole_number(f"number, 0 to {model.pictures - 1}", source["picture"], 0, model.pictures - 1, name)
        source = {"picture": number or 0}
    values[name] = source


# --- The kinds ---


class MaskKind(Kind):
    name, title, about = "mask", "Mask", "who may see whom"
    presets: ClassVar[dict[str, str]] = {
        "causal": "causal: what came before",
        "full": "full: everything",
        "window": "window: what is near",
        "causal window": "window of what came before",
        "prefix": "prefix: its first tokens for all",
    }
    paints: ClassVar[dict[str, str]] = {"flip": "allow / block", "allow": "allow", "forbid": "block"}

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] in ("PresetMask", "PaintMask", "DrawMask")

    def blank(self, model: Editable, place: Place) -> Values:
        return self.begin("paint") | place.values

    def begin(self, way: str) -> Values:
        if way == "paint":
            return {"edit": "PaintMask", "cells": [], "rows": [], "columns": [], "to": "flip"}
        if way == "draw":
            return {"edit": "DrawMask", "allowed": None}
        return {"edit": "PresetMask", "kind": way, "size": 3 if self.has_size(way) else None}

    @staticmethod
    def has_size(way: str) -> bool:
        return way in ("window", "causal window", "prefix")

    def draw(self, form: Form) -> None:
        values = form.values
        own = attention_of(values, form.model)
        now = {"PaintMask": "paint", "DrawMask": "draw"}.get(values["edit"]) or str(values.get("kind"))
        whole = {"draw": "drawn whole, in place of its own"} if drawable(own) or now == "draw" else {}
        way = form.select("mask", {"paint": "painted by hand", **whole, **self.presets}, now)
        if way != now:
            form.replace(self.begin(way) | {name: values[name] for name in PLACE})
        if way == "paint":
            values["to"] = form.select("what is painted", self.paints, values["to"])
        if self.has_size(way):
            label = "tokens" if way == "prefix" else "reach"
            values["size"] = form.whole_number(label, values["size"], 1, 2**31, way)
        own = choose_attention(form)
        choose_block(form, own.layers)
        choose_heads(form, own)
        if way in ("paint", "draw"):
            form.paint("mask", f"who (row) may see whom (column){shown_head(values)}", own)


def drawable(own: EditableAttention) -> bool:
    return max(len(own.rows), len(own.keys)) <= WHOLE


class TemperatureKind(Kind):
    name, title, about = "temperature", "Attention temperature", "sharper or flatter"

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] == "AttentionTemperature"

    def blank(self, model: Editable, place: Place) -> Values:
        return {"edit": "AttentionTemperature", "value": 2.0, **place.values}

    def draw(self, form: Form) -> None:
        form.values["value"] = form.number("temperature", form.values["value"], least=0.0)
        own = choose_attention(form)
        choose_block(form, own.layers)
        choose_heads(form, own)


class SilenceKind(Kind):
    name, title, about = "silence", "Silence heads", "zero, mean, uniform"
    ways: ClassVar[dict[str, str]] = {
        "zero": "their output is 0",
        "mean": "their mean over the text",
        "uniform": "they attend evenly",
    }

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] == "SilenceHeads"

    def blank(self, model: Editable, place: Place) -> Values:
        return {"edit": "SilenceHeads", "how": "zero", **place.values, "heads": [place.head]}

    def draw(self, form: Form) -> None:
        values = form.values
        own = choose_attention(form)
        values["heads"] = [0] if values["heads"] is None else values["heads"]
        choose_block(form, own.layers, every=False)
        values["heads"] = form.heads("heads", own.heads, values["heads"], own.label)
        if not values["heads"]:
            form.faults.append("Expected one head or more to silence, got none; choose those to silence.")
        values["how"] = form.select("how", self.ways, values["how"])


class PatternKind(Kind):
    """Pattern of attention. The form's `to` is its shape, `from` the other head, `brush` the weight to paint."""

    name, title, about = "pattern", "Pattern", "say what heads attend to"
    shapes: ClassVar[dict[str, str]] = {
        "uniform": "evenly to all they may see",
        "previous": "to the previous token",
        "first": "to the first token",
        "itself": "to the token itself",
        "position": "to one token",
        "other": "as another head does",
        "painted": "weights painted by hand",
        "drawn": "weights drawn whole, in place of its own",
    }
    sums: ClassVar[dict[bool, str]] = {False: "go on summing to 1", True: "as painted, whatever their sum"}

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] in ("SetPattern", "PaintPattern", "DrawPattern") or self.is_other_head(edit)

    @staticmethod
    def is_other_head(edit: Mapping[str, Any]) -> bool:
        return (
            edit["edit"] == "Patch"
            and edit["source"] is None
            and str(edit.get("source_hook")).endswith(".pattern")
            and isinstance(edit["at"].get("head"), int)
            and isinstance((edit.get("source_at") or {}).get("head"), int)
        )

    def blank(self, model: Editable, place: Place) -> Values:
        return self.begin(place.values | {"heads": [place.head]})

    @staticmethod
    def begin(place: Values) -> Values:
        made: Values = {"to": "previous", "position": 0, "from": {"layer": 0, "head": 0}}
        return made | {"cells": [], "weights": [], "drawn": None, "brush": 1.0, "free": False} | place

    def read(self, edit: Values) -> Values:
        if self.is_other_head(edit):
            here, there = parse_hook(edit["hook"]), parse_hook(edit["source_hook"])
            place = {"layer": here.layer, "heads": [edit["at"]["head"]], "stack": here.stack}
            made = self.begin(place | {"cross": here.part.startswith("cross_attn")})
            return made | {"to": "other", "from": {"layer": there.layer, "head": edit["source_at"]["head"]}}
        made = self.begin({name: edit[name] for name in PLACE})
        if edit["edit"] == "SetPattern":
            return made | {"to": edit["to"], "position": edit["position"] or 0}
        made["free"] = edit["free"]
        if edit["edit"] == "DrawPattern":
            return made | {"to": "drawn", "drawn": edit["weights"]}
        return made | {"to": "painted", "cells": edit["cells"], "weights": edit["weights"]}

    def edit(self, values: Values) -> Values:
        to, place = values["to"], {name: values[name] for name in PLACE}
        if to == "painted":
            painted = {name: values[name] for name in ("cells", "weights", "free")}
            return {"edit": "PaintPattern", **painted, **place}
        if to == "drawn":
            return {"edit": "DrawPattern", "weights": values["drawn"], "free": values["free"], **place}
        if to != "other":
            position = values["position"] if to == "position" else None
            return {"edit": "SetPattern", "to": to, "position": position, **place}
        before = f"{values['stack']}." if values["stack"] else ""
        after = "cross_attn.pattern" if values["cross"] else "attn.pattern"
        here, there = (f"{before}blocks.{layer}.{after}" for layer in (values["layer"], values["from"]["layer"]))
        source = {"source": None, "source_hook": there, "source_at": {"head": values["from"]["head"]}}
        return {"edit": "Patch", "hook": here, **source, "at": {"head": values["heads"][0]}}

    def draw(self, form: Form) -> None:
        values = form.values
        own = attention_of(values, form.model)
        shapes = dict(self.shapes)
        if own.cross:  # which reads another text
            del shapes["previous"], shapes["itself"]
        if not values["drawn"] and not drawable(own):
            del shapes["drawn"]
        values["to"] = to = form.select("attend", shapes, values["to"])
        own = choose_attention(form)
        other = to == "other"
        choose_block(form, own.layers, every=not other)
        if other:
            self.choose_other(form, own)
        else:
            choose_heads(form, own)
        if to == "position":
            values["position"] = form.token("to", own.keys, values["position"], own.label)
        if to in ("painted", "drawn"):
            bounds: Values = {} if values["free"] else {"least": 0.0, "most": 1.0}
            values["brush"] = form.number("weight to paint", values["brush"], **bounds)
            values["free"] = form.select("rows", self.sums, values["free"], form.draft.freed)
            form.paint("pattern", f"how much each token (row) looks at each (column){shown_head(values)}", own)

    @staticmethod
    def choose_other(form: Form, own: EditableAttention) -> None:
        values = form.values
        values["heads"] = [form.head("head", own.heads, (values["heads"] or [0])[0], own.label)]
        layer = form.select("as in block", blocks(own.layers), values["from"]["layer"], own.label)
        values["from"] = {"layer": layer, "head": form.head("its head", own.heads, values["from"]["head"], own.label)}


class PartKind(Kind):
    name, title, about = "parts", "Sublayer, residual, norm", "take out or scale"

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        hooks = {hook for own in model.stacks for block in own.parts for hook in block.values()}
        return edit["edit"] == "Scale" and not edit["at"] and edit["hook"] in hooks

    def blank(self, model: Editable, place: Place) -> Values:
        own = model.stacks[-1].parts[min(place.layer, model.stacks[-1].layers - 1)]
        return {"edit": "Scale", "hook": own.get("MLP") or next(iter(own.values())), "factor": 0.0, "at": {}}

    def draw(self, form: Form) -> None:
        values, model = form.values, form.model
        where = parse_hook(values["hook"])
        own = stack_of(where.stack, model)
        layer = where.layer if isinstance(where.layer, int) else 0
        now = next((name for name, hook in own.parts[layer].items() if hook == values["hook"]), None)
        if len(model.stacks) > 1:
            own = stack_of(form.select("stack", {one.stack: str(one.stack) for one in model.stacks}, own.stack), model)
        parts = own.parts[form.select("block", blocks(own.layers), min(layer, own.layers - 1), own.stack)]
        values["hook"] = parts[form.select("part", {name: name for name in parts}, now)]
        values["factor"] = form.number("multiply by (0 removes)", values["factor"])


class PositionKind(Kind):
    name, title, about = "positions", "Positions", "swap, drop, shift"
    lacking = "this model has none to change; it tells its tokens apart by their order under the mask alone."
    ways: ClassVar[dict[str, str]] = {
        "SwapPositions": "swap two tokens' positions",
        "DropPositions": "remove positions",
        "ShiftPositions": "shift positions",
    }

    def fits(self, model: Editable) -> bool:
        return any(own.positions for own in model.stacks)

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] in self.ways

    def blank(self, model: Editable, place: Place) -> Values:
        own = model.stacks[-1]
        way = "SwapPositions" if len(own.pieces) > 1 else "DropPositions"
        return self.begin(way, own) | {"layer": None, "stack": own.stack}

    @staticmethod
    def begin(way: str, own: EditableStack) -> Values:
        if way == "SwapPositions":
            return {"edit": way, "first": 0, "second": min(1, len(own.pieces) - 1)}
        return {"edit": way, "positions": None} | ({"by": 1} if way == "ShiftPositions" else {})

    def draw(self, form: Form) -> None:
        values = form.values
        now = values["edit"]
        way = form.select("do", self.ways, now)
        own = choose_stack(form)
        if way != now:
            form.replace(self.begin(way, own) | {"layer": values["layer"], "stack": values["stack"]})
        if own.turned:
            choose_block(form, own.layers)
        if way == "ShiftPositions":
            values["by"] = form.whole_number("by", values["by"])
        if way == "SwapPositions":
            values["first"] = form.token("one", own.pieces, values["first"])
            values["second"] = form.token("other", own.pieces, values["second"])
        else:
            values["positions"] = form.tokens("tokens", own.pieces, values["positions"] or [], way) or None


class TokenKind(Kind):
    name, title, about = "token", "Token", "exchange or mix an embedding"
    lacking = (
        "this model reads patches and has no tokens to exchange; Patch puts another picture’s patch there: "
        "its value embed.patches, outside of the blocks."
    )

    def fits(self, model: Editable) -> bool:
        return any(own.tokens for own in model.stacks)

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] == "ChangeToken"

    def blank(self, model: Editable, place: Place) -> Values:
        token = {"text": ""}
        return {"edit": "ChangeToken", "position": 0, "token": token, "share": 1.0, "stack": model.stacks[-1].stack}

    def draw(self, form: Form) -> None:
        values = form.values
        own = choose_stack(form)
        text = form.text("becomes", values["token"]["text"], "one token")
        if text != values["token"]["text"]:
            values["token"] = {"text": text}
        values["share"] = form.number("mix (1 = replace)", values["share"])
        values["position"] = form.token("token", own.pieces, values["position"])


class PatchKind(Kind):
    name, title, about = "patch", "Patch", "a value from another run"

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        """Asks whether the source is the same place but for its token, which is all that the form asks of it."""
        if edit["edit"] != "Patch" or find_hook(edit["hook"], model) is None:
            return False
        there = edit.get("source_at")
        rest, own = ({axis: i for axis, i in (at or {}).items() if axis != "pos"} for at in (there, edit["at"]))
        alike = there is None or (rest == own and isinstance(there.get("pos", 0), int))
        hook = edit.get("source_hook")
        return alike and (not hook or isinstance(parse_hook(hook).layer, int))

    def blank(self, model: Editable, place: Place) -> Values:
        own = model.stacks[-1]
        hook = f"{own.prefix}blocks.{min(place.layer, own.layers - 1)}.resid_post"
        at = {"pos": [min(place.row, len(own.pieces) - 1)]}
        return {"edit": "Patch", "hook": hook, "source": blank_source(model), "at": at, "source_hook": None} | {
            "source_at": None
        }

    def read(self, edit: Values) -> Values:
        return edit | {"source": read_source(edit["source"])}

    def edit(self, values: Values) -> Values:
        """Heads and the like are those of `at` there as well: only the token may be another one."""
        there = values["source_at"]
        return values | {"source_at": values["at"] | there} if there else values

    def draw(self, form: Form) -> None:
        values, model, what = form.values, form.model, what_others(form.model)
        choose_hook(form, "value")
        other = values["source"] is not None
        chosen = form.select("taken from", {True: f"another {what}", False: f"this {what}, without edits"}, other)
        if chosen != other:
            values["source"] = blank_source(model) if chosen else None
        if chosen:
            choose_source(form, "source", f"the other {what}", "the same text with another word in it")
        found = find_hook(values["hook"], model)
        if found is None:
            return
        own, held, where = found
        if where.layer is None:
            values["source_hook"] = None
        else:
            self.choose_other_value(form, own, held, where)
        choose_part(form, "at")
        now, values["source_at"] = (values["source_at"] or {}).get("pos"), None
        if held.axes[:1] and held.axes[0][0] == "pos" and values["at"].get("pos"):
            there = form.whole_number("its token number", now, 0, 2**31, hint="same")
            values["source_at"] = None if there is None else {"pos": there}

    @staticmethod
    def choose_other_value(form: Form, own: EditableStack, held: EditableValue, where: HookName) -> None:
        """Draws the field of the other run's value: the same, or one of its shape."""
        alike = [one for one in own.inner if one.axes == held.axes]
        options = {SAME: SAME}
        for block in range(own.layers):
            for one in alike:
                name = f"{own.prefix}blocks.{block}.{one.part}"
                if name != form.values["hook"] or where.layer == "*":
                    options[name] = f"block {block + 1}, {one.part}"
        chosen = form.select("its value", options, form.values.get("source_hook") or SAME)
        form.values["source_hook"] = None if chosen == SAME else chosen


class SteerKind(Kind):
    name, title, about = "steer", "Steering vector", "the difference of two runs"

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] == "Steer" and find_hook(edit["hook"], model) is not None

    def blank(self, model: Editable, place: Place) -> Values:
        own = model.stacks[-1]
        hook = f"{own.prefix}blocks.{min(place.layer, own.layers - 1)}.resid_pre"
        toward, away = (blank_source(model), {"picture": 0}) if model.pictures else ({"text": ""}, {"text": ""})
        factor, read = (1.0 if model.pictures else 4.0), ("mean" if model.pictures or model.closed else "last")
        return {"edit": "Steer", "hook": hook, "toward": toward, "away": away, "factor": factor, "read": read, "at": {}}

    def read(self, edit: Values) -> Values:
        return edit | {name: read_source(edit[name]) for name in ("toward", "away")}

    def draw(self, form: Form) -> None:
        values, model = form.values, form.model

        def suits(value: EditableValue) -> bool:
            axes = [axis for axis, _ in value.axes]
            return axes[:1] == ["pos"] and "key" not in axes

        choose_hook(form, "value", suits)
        choose_source(form, "toward", "toward", "a text such as: Love")
        choose_source(form, "away", "away from", "a text such as: Hate")
        values["factor"] = form.number("times", values["factor"])
        last, mean = ("place", "places") if model.pictures else ("token", "tokens")
        reads = {"last": f"at the last {last}", "mean": f"as the mean over all {mean}"}
        values["read"] = form.select("read", reads, values["read"])
        choose_part(form, "added at")


class ValueKind(Kind):
    name, title, about = "value", "Any value", "set or scale what a hook holds"
    ways: ClassVar[dict[str, str]] = {"number": "set to", "numbers": "set to several numbers", "scale": "multiply"}

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] in ("Scale", "Replace") and find_hook(edit["hook"], model) is not None

    def blank(self, model: Editable, place: Place) -> Values:
        own = model.stacks[-1]
        hook = f"{own.prefix}blocks.{min(place.layer, own.layers - 1)}.resid_post"
        return {"edit": "Replace", "hook": hook, "value": 0.0, "at": {}}

    def draw(self, form: Form) -> None:
        values = form.values
        now = "scale" if values["edit"] == "Scale" else "numbers" if isinstance(values["value"], list) else "number"
        way = form.select("do", self.ways, now)
        if way != now:
            place = {"hook": values["hook"], "at": values["at"]}
            scale: Values = {"edit": "Scale", "factor": 0.0}
            form.replace((scale if way == "scale" else {"edit": "Replace", "value": 0.0}) | place)
            if way == "numbers":
                values["value"] = [0, 0]
        choose_hook(form, "value")
        if way == "scale":
            values["factor"] = form.number("multiply by (0 removes)", values["factor"])
        elif way == "number":
            values["value"] = form.number("number", values["value"])
        else:
            found = find_hook(values["hook"], form.model)
            free = [each for each in (found[1].axes if found else ()) if not isinstance(values["at"].get(each[0]), int)]
            along = f", along {free[-1][0]} ({free[-1][1]})" if free else ""
            numbers = form.parsed_text(f"numbers{along}", write_numbers(values["value"]), "0, 0.5, 1", read_numbers)
            values["value"] = values["value"] if numbers is None else numbers
        choose_part(form, "at")


class AdapterKind(Kind):
    name, title, about = "adapter", "Adapter", "a low-rank change of the weights"
    lacking = (
        "none that fits this model is here; open a folder with an adapter_config.json on Open a model, "
        "or train one on Adapt."
    )

    def fits(self, model: Editable) -> bool:
        return bool(model.adapters)

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return edit["edit"] == "ApplyAdapter" and edit["adapter"] in model.adapters

    def blank(self, model: Editable, place: Place) -> Values:
        return {"edit": "ApplyAdapter", "adapter": next(iter(model.adapters)), "strength": 1.0}

    def draw(self, form: Form) -> None:
        values = form.values
        values["adapter"] = form.select("adapter", form.model.adapters, values["adapter"])
        values["strength"] = form.slider("strength", values["strength"], 0.0, STRONGEST, 0.05)


def write_numbers(value: Sequence[Any]) -> str:
    """Numbers as `read_numbers` reads them; a plain list without its brackets."""
    text = json.dumps(value)
    return text[1:-1] if "[" not in text[1:] else text


KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        MaskKind(),
        TemperatureKind(),
        SilenceKind(),
        PatternKind(),
        PartKind(),
        PositionKind(),
        TokenKind(),
        PatchKind(),
        SteerKind(),
        ValueKind(),
        AdapterKind(),
    )
}


def kind_of(edit: Mapping[str, Any], model: Editable) -> Kind | None:
    """The kind whose form shows an edit, None where none does."""
    return next((kind for kind in KINDS.values() if kind.fits(model) and kind.shows(edit, model)), None)
