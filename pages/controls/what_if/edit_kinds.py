"""The kinds of edits that a person can make, each declared once: what it is called, the fields of its form, its words.

Where an edit of several engine classes has one form, its `way` says which of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from engine.edits import (
    ApplyAdapter,
    AttentionTemperature,
    ChangeToken,
    DrawMask,
    DrawPattern,
    DropPositions,
    Edit,
    PaintMask,
    PaintPattern,
    Patch,
    PresetMask,
    Replace,
    Scale,
    SetPattern,
    ShiftPositions,
    SilenceHeads,
    Steer,
    SwapPositions,
)
from engine.edits.adapters import STRONGEST
from engine.plurals import count_words
from pages.controls.what_if.edit_fields import (
    ATTENTION,
    PLACE,
    SAME,
    STACK,
    Field,
    Place,
    Values,
    at_field,
    attention_of,
    blank_source,
    blocks,
    choice_field,
    choose_attention,
    choose_block,
    choose_heads,
    choose_key,
    choose_numbers,
    choose_one_block,
    choose_part,
    choose_tokens,
    drawable,
    find_hook,
    first_part,
    hook_field,
    number_field,
    own_stack,
    paint_field,
    parse_hook,
    read_source,
    source_field,
    token_field,
    type_token,
    what_others,
    whole_number_field,
)
from pages.controls.what_if.edit_form import Form
from views.what_if.edit_words import (
    Terms,
    attention_words,
    chosen,
    head_words,
    join_words,
    source_words,
)
from views.what_if.experiment import Editable, EditableValue


class Kind(ABC):
    """A kind of edit. `edits` are the classes of the engine that its form makes, the first of which it begins with.
    `lacking` says why a model that it does not fit cannot be edited so."""

    name: ClassVar[str]
    title: ClassVar[str]
    about: ClassVar[str]
    edits: ClassVar[Sequence[type[Edit]]]
    fields: ClassVar[Sequence[Field]]
    lacking: ClassVar[str] = ""
    ways_label: ClassVar[str] = "do"
    ways: ClassVar[Mapping[str, str]] = {}
    kept: ClassVar[Sequence[str]] = ()

    def fits(self, model: Editable) -> bool:
        return True

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        """Tells whether the form shows this edit whole."""
        known = any(edit["edit"] == one.__name__ for one in self.edits)
        return known and ("hook" not in edit or find_hook(edit["hook"], model) is not None)

    def blank(self, model: Editable, place: Place) -> Values:
        """Returns the values that the form begins with."""
        made: Values = {"edit": self.edits[0].__name__}
        for field in self.fields:
            made |= field.begin(model, place)
        return made

    def way(self, values: Values) -> str:
        """Key of the one of the `ways` that the values take."""
        return str(values["edit"])

    def begin(self, way: str, form: Form) -> Values:
        """The values of another way, beside those that are `kept`."""
        return {"edit": way}

    def offered(self, form: Form) -> Mapping[str, str]:
        return self.ways

    def draw(self, form: Form) -> None:
        """Draws the fields, which write into the form's values."""
        if self.ways:
            now = self.way(form.values)
            way = form.select(self.ways_label, self.offered(form), now)
            if way != now:
                form.replace(self.begin(way, form) | {name: form.values[name] for name in self.kept})
        for field in self.fields:
            if field.when(form):
                field.draw(form)

    def read(self, edit: Values) -> Values:
        """The form's values of an edit that it `shows`."""
        return edit

    def edit(self, values: Values) -> Values:
        """The edit that the form's values say."""
        return values

    @abstractmethod
    def words(self, edit: Any, terms: Terms) -> str:
        """Describes one of `edits`, in a few words and with the tokens that it names."""


def goes(*ways: str) -> Any:
    """Tells of a form whether it goes one of these ways."""
    return lambda form: KINDS[form.draft.kind].way(form.values) in ways


class MaskKind(Kind):
    name, title, about = "mask", "Mask", "who may see whom"
    edits = (PaintMask, DrawMask, PresetMask)
    ways_label, kept = "mask", PLACE
    ways: ClassVar[dict[str, str]] = {
        "paint": "painted by hand",
        "draw": "drawn whole, in place of its own",
        "causal": "causal: what came before",
        "full": "full: everything",
        "window": "window: what is near",
        "causal window": "window of what came before",
        "prefix": "prefix: its first tokens for all",
    }
    windows = ("window", "causal window")
    fields = (
        choice_field(
            "to", "what is painted", {"flip": "allow / block", "allow": "allow", "forbid": "block"}, when=goes("paint")
        ),
        whole_number_field("size", "tokens", 1, when=goes("prefix")),
        whole_number_field("size", "reach", 1, when=goes(*windows)),
        *ATTENTION,
        paint_field("mask", "who (row) may see whom (column)", when=goes("paint", "draw")),
    )

    def blank(self, model: Editable, place: Place) -> Values:
        return self.start("paint") | place.values

    def way(self, values: Values) -> str:
        return {"PaintMask": "paint", "DrawMask": "draw"}.get(values["edit"]) or str(values.get("kind"))

    def begin(self, way: str, form: Form) -> Values:
        return self.start(way)

    def start(self, way: str) -> Values:
        if way == "paint":
            return {"edit": "PaintMask", "cells": [], "rows": [], "columns": [], "to": "flip"}
        if way == "draw":
            return {"edit": "DrawMask", "allowed": None}
        return {"edit": "PresetMask", "kind": way, "size": 3 if way in (*self.windows, "prefix") else None}

    def offered(self, form: Form) -> Mapping[str, str]:
        whole = drawable(attention_of(form.values, form.model)) or self.way(form.values) == "draw"
        return {way: words for way, words in self.ways.items() if way != "draw" or whole}

    def words(self, edit: Any, terms: Terms) -> str:
        place = attention_words(edit)
        match edit:
            case PresetMask(kind=kind, size=size):
                of = {"prefix": f" of {count_words(size or 0, 'token')}"}.get(kind, f" of {size}") if size else ""
                return f"{kind} mask{of}, {place}"
            case PaintMask(cells=cells, rows=rows, columns=columns, to=to):
                named = [f"the row of {terms.tokens(rows, edit.stack)}"] if rows else []
                named += [f"the column of {terms.tokens(columns, terms.read_by(edit))}"] if columns else []
                named += [count_words(len(cells), "cell")] if cells else []
                done = {"flip": "mask painted", "allow": "allow", "forbid": "block"}[to]
                return f"{done}: {join_words(named)}, {place}"
        return f"a drawn mask, {place}"


class TemperatureKind(Kind):
    name, title, about = "temperature", "Attention temperature", "sharper or flatter"
    edits = (AttentionTemperature,)
    fields = (number_field("value", "temperature", 2.0, least=0.0), *ATTENTION)

    def words(self, edit: Any, terms: Terms) -> str:
        return f"attention temperature {edit.value:g}, {attention_words(edit)}"


def choose_silenced(form: Form) -> None:
    values, own = form.values, attention_of(form.values, form.model)
    values["heads"] = form.heads("heads", own.heads, [0] if values["heads"] is None else values["heads"], own.label)
    if not values["heads"]:
        form.faults.append("Expected one head or more to silence, got none; choose those to silence.")


class SilenceKind(Kind):
    name, title, about = "silence", "Silence heads", "zero, mean, uniform"
    edits = (SilenceHeads,)
    fields = (
        Field(choose_attention, begin=lambda model, place: place.values | {"heads": [place.head]}),
        Field(choose_one_block),
        Field(choose_silenced),
        choice_field(
            "how", "how",
            {"zero": "their output is 0", "mean": "their mean over the text", "uniform": "they attend evenly"}, "zero",
        ),
    )  # fmt: skip

    def words(self, edit: Any, terms: Terms) -> str:
        done = {"zero": "silenced", "mean": "replaced by their mean over the text", "uniform": "attend evenly"}
        return f"{attention_words(edit)}: {done[edit.how]}"


def choose_other_head(form: Form) -> None:
    """Draws the choice of the head to change, and of the head whose attention it takes over."""
    values, own = form.values, attention_of(form.values, form.model)
    values["heads"] = [form.head("head", own.heads, (values["heads"] or [0])[0], own.label)]
    layer = form.select("as in block", blocks(own.layers), values["from"]["layer"], own.label)
    values["from"] = {"layer": layer, "head": form.head("its head", own.heads, values["from"]["head"], own.label)}


def choose_brush(form: Form) -> None:
    """The weight to paint; of rows that sum to 1, from 0 to 1."""
    bounds: Values = {} if form.values["free"] else {"least": 0.0, "most": 1.0}
    form.values["brush"] = form.number("weight to paint", form.values["brush"], **bounds)


class PatternKind(Kind):
    """Pattern of attention. The form's `to` is its shape, `from` the other head, `brush` the weight to paint."""

    name, title, about = "pattern", "Pattern", "say what heads attend to"
    edits = (SetPattern, PaintPattern, DrawPattern)

    @staticmethod
    def shapes(form: Form) -> dict[str, str]:
        own = attention_of(form.values, form.model)
        offered = {
            "uniform": "evenly to all they may see",
            "previous": "to the previous token",
            "first": "to the first token",
            "itself": "to the token itself",
            "position": "to one token",
            "other": "as another head does",
            "painted": "weights painted by hand",
            "drawn": "weights drawn whole, in place of its own",
        }
        if own.cross:  # which reads another text
            del offered["previous"], offered["itself"]
        if not form.values["drawn"] and not drawable(own):
            del offered["drawn"]
        return offered

    fields = (
        choice_field("to", "attend", shapes),
        Field(choose_attention),
        Field(choose_block, when=lambda form: form.values["to"] != "other"),
        Field(choose_one_block, when=goes("other")),
        Field(choose_other_head, when=goes("other")),
        Field(choose_heads, when=lambda form: form.values["to"] != "other"),
        Field(choose_key, when=goes("position")),
        Field(choose_brush, when=goes("painted", "drawn")),
        choice_field(
            "free", "rows", {False: "go on summing to 1", True: "as painted, whatever their sum"},
            when=goes("painted", "drawn"),
        ),
        paint_field("pattern", "how much each token (row) looks at each (column)", when=goes("painted", "drawn")),
    )  # fmt: skip

    def way(self, values: Values) -> str:
        return str(values["to"])

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return super().shows(edit, model) or self.is_other_head(edit)

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
        return self.start(place.values | {"heads": [place.head]})

    @staticmethod
    def start(place: Values) -> Values:
        made: Values = {"to": "previous", "position": 0, "from": {"layer": 0, "head": 0}}
        return made | {"cells": [], "weights": [], "drawn": None, "brush": 1.0, "free": False} | place

    def read(self, edit: Values) -> Values:
        if self.is_other_head(edit):
            here, there = parse_hook(edit["hook"]), parse_hook(edit["source_hook"])
            place = {"layer": here.layer, "heads": [edit["at"]["head"]], "stack": here.stack}
            made = self.start(place | {"cross": here.part.startswith("cross_attn")})
            return made | {"to": "other", "from": {"layer": there.layer, "head": edit["source_at"]["head"]}}
        made = self.start({name: edit[name] for name in PLACE})
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

    def words(self, edit: Any, terms: Terms) -> str:
        heads = attention_words(edit)
        match edit:
            case SetPattern(to="position", position=int(position)):
                return f"{heads}: attend to {terms.token(position, terms.read_by(edit))} alone"
            case SetPattern(to=to):
                shapes = {"uniform": "evenly to all they may see", "itself": "to the token itself alone"}
                return f"{heads}: attend {shapes.get(to, f'to the {to} token alone')}"
            case PaintPattern(cells=[[query, key]], weights=[weight]):
                pair = f"{terms.token(query, edit.stack)} looks at {terms.token(key, terms.read_by(edit))}"
                return f"{heads}: {pair} with {100 * weight:g} %"
            case PaintPattern(cells=cells):
                rows = sorted({row for row, _ in cells})
                painted = f"{count_words(len(cells), 'weight')} painted, {'row' if len(rows) == 1 else 'rows'} of"
                return f"{heads}: {painted} {terms.tokens(rows, edit.stack)}"
        return f"a drawn pattern, {heads}"


def scale_words(edit: Scale, terms: Terms) -> str:
    done = "taken out" if edit.factor == 0 else f"× {edit.factor:g}"
    return f"{terms.place(edit.hook)}: {done}{chosen(edit.at, edit.hook, terms)}"


class PartKind(Kind):
    name, title, about = "parts", "Sublayer, residual, norm", "take out or scale"
    edits = (Scale,)
    fields = (Field(choose_part, begin=first_part), number_field("factor", "multiply by (0 removes)", 0.0))

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        hooks = {hook for own in model.stacks for block in own.parts for hook in block.values()}
        return edit["edit"] == "Scale" and not edit["at"] and edit["hook"] in hooks

    def words(self, edit: Any, terms: Terms) -> str:
        return scale_words(edit, terms)


class PositionKind(Kind):
    name, title, about = "positions", "Positions", "swap, drop, shift"
    lacking = "this model has none to change; it tells its tokens apart by their order under the mask alone."
    edits = (SwapPositions, DropPositions, ShiftPositions)
    kept = ("layer", "stack")
    ways: ClassVar[dict[str, str]] = {
        "SwapPositions": "swap two tokens' positions",
        "DropPositions": "remove positions",
        "ShiftPositions": "shift positions",
    }
    fields = (
        STACK,
        Field(choose_block, when=lambda form: own_stack(form).turned),
        whole_number_field("by", "by", when=goes("ShiftPositions")),
        token_field("first", "one", when=goes("SwapPositions")),
        token_field("second", "other", when=goes("SwapPositions")),
        Field(choose_tokens, when=goes("DropPositions", "ShiftPositions")),
    )

    def fits(self, model: Editable) -> bool:
        return any(own.positions for own in model.stacks)

    def blank(self, model: Editable, place: Place) -> Values:
        own = model.stacks[-1]
        way = "SwapPositions" if len(own.pieces) > 1 else "DropPositions"
        return self.start(way, len(own.pieces)) | {"layer": None, "stack": own.stack}

    def begin(self, way: str, form: Form) -> Values:
        return self.start(way, len(own_stack(form).pieces))

    @staticmethod
    def start(way: str, count: int) -> Values:
        if way == "SwapPositions":
            return {"edit": way, "first": 0, "second": min(1, count - 1)}
        return {"edit": way, "positions": None} | ({"by": 1} if way == "ShiftPositions" else {})

    def words(self, edit: Any, terms: Terms) -> str:
        place = "" if edit.layer is None and edit.stack is None else f", {attention_words(edit)}"
        match edit:
            case SwapPositions(first=first, second=second):
                return f"{terms.token(first, edit.stack)} and {terms.token(second, edit.stack)} swap positions{place}"
            case ShiftPositions(by=by, positions=positions):
                far, way = count_words(abs(by), "position"), "on" if by >= 0 else "back"
                return f"{terms.tokens(positions, edit.stack)} stands {far} further {way}{place}"
        return f"{terms.tokens(edit.positions, edit.stack)} without position{place}"


class TokenKind(Kind):
    name, title, about = "token", "Token", "exchange or mix an embedding"
    lacking = (
        "this model reads patches and has no tokens to exchange; Patch puts another picture’s patch there: "
        "its value embed.patches, outside of the blocks."
    )
    edits = (ChangeToken,)
    fields = (
        STACK,
        Field(type_token, begin=lambda model, place: {"token": {"text": ""}}),
        number_field("share", "mix (1 = replace)", 1.0),
        token_field("position", "token"),
    )

    def fits(self, model: Editable) -> bool:
        return any(own.tokens for own in model.stacks)

    def words(self, edit: Any, terms: Terms) -> str:
        old, new = terms.token(edit.position, edit.stack), f"“{terms.read([edit.token]).strip()}”"
        return f"{old} becomes {new}" if edit.share == 1 else f"{old} becomes {100 * edit.share:g} % {new}"


def choose_origin(form: Form) -> None:
    """Draws the choice of a value's source: another text, or this one without edits."""
    values, what = form.values, what_others(form.model)
    other = values["source"] is not None
    chosen = form.select("taken from", {True: f"another {what}", False: f"this {what}, without edits"}, other)
    if chosen != other:
        values["source"] = blank_source(form.model) if chosen else None


def choose_other_value(form: Form) -> None:
    """The value of the other run: the same, or one of its shape."""
    found = find_hook(form.values["hook"], form.model)
    if found is None or found[2].layer is None:
        form.values["source_hook"] = None
        return
    own, held, where = found
    options = {SAME: SAME}
    for block in range(own.layers):
        for one in (one for one in own.inner if one.axes == held.axes):
            name = f"{own.prefix}blocks.{block}.{one.part}"
            if name != form.values["hook"] or where.layer == "*":
                options[name] = f"block {block + 1}, {one.part}"
    chosen = form.select("its value", options, form.values.get("source_hook") or SAME)
    form.values["source_hook"] = None if chosen == SAME else chosen


def choose_other_token(form: Form) -> None:
    """The number of the other run's token, of a value by token; none stands for the same."""
    values, found = form.values, find_hook(form.values["hook"], form.model)
    now, values["source_at"] = (values["source_at"] or {}).get("pos"), None
    if found and found[1].axes[:1] and found[1].axes[0][0] == "pos" and values["at"].get("pos"):
        there = form.whole_number("its token number", now, 0, 2**31, hint="same")
        values["source_at"] = None if there is None else {"pos": there}


class PatchKind(Kind):
    name, title, about = "patch", "Patch", "a value from another run"
    edits = (Patch,)
    fields = (
        hook_field("resid_post"),
        Field(choose_origin),
        source_field(
            "source", "the other {what}", "the same text with another word in it",
            when=lambda form: form.values["source"] is not None,
        ),
        Field(choose_other_value),
        at_field(),
        Field(choose_other_token),
    )  # fmt: skip

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        """Asks whether the source is the same place but for its token, which is all that the form asks of it."""
        if not super().shows(edit, model):
            return False
        there = edit.get("source_at")
        rest, own = ({axis: i for axis, i in (at or {}).items() if axis != "pos"} for at in (there, edit["at"]))
        alike = there is None or (rest == own and isinstance(there.get("pos", 0), int))
        hook = edit.get("source_hook")
        return alike and (not hook or isinstance(parse_hook(hook).layer, int))

    def blank(self, model: Editable, place: Place) -> Values:
        at = {"pos": [min(place.row, len(model.stacks[-1].pieces) - 1)]}
        return super().blank(model, place) | {"at": at, "source_hook": None, "source_at": None}

    def read(self, edit: Values) -> Values:
        return edit | {"source": read_source(edit["source"])}

    def edit(self, values: Values) -> Values:
        """Heads and the like are those of `at` there as well: only the token may be another one."""
        there = values["source_at"]
        return values | {"source_at": values["at"] | there} if there else values

    def words(self, edit: Any, terms: Terms) -> str:
        hook, source, other = edit.hook, edit.source, edit.source_hook
        if source is None and str(other).endswith(".pattern"):
            there = head_words(other, edit.source_at or {}, terms)
            return f"{head_words(hook, edit.at, terms)}: as {there} attends"
        taken = f"{terms.place(other)} in " if other and other != hook else "in "
        return f"{terms.place(hook)}{chosen(edit.at, hook, terms)}: as {taken}{source_words(source, terms)}"


def by_token(value: EditableValue) -> bool:
    """Tells whether a value has one vector for each token."""
    axes = [axis for axis, _ in value.axes]
    return axes[:1] == ["pos"] and "key" not in axes


def read_at(form: Form) -> dict[str, str]:
    last, mean = ("place", "places") if form.model.pictures else ("token", "tokens")
    return {"last": f"at the last {last}", "mean": f"as the mean over all {mean}"}


class SteerKind(Kind):
    name, title, about = "steer", "Steering vector", "the difference of two runs"
    edits = (Steer,)
    fields = (
        hook_field("resid_pre", by_token),
        source_field("toward", "toward", "a text such as: Love"),
        source_field("away", "away from", "a text such as: Hate"),
        number_field("factor", "times", 4.0),
        choice_field("read", "read", read_at, "last"),
        at_field("added at"),
    )

    def blank(self, model: Editable, place: Place) -> Values:
        made = super().blank(model, place)
        if model.pictures:
            made |= {"away": {"picture": 0}, "factor": 1.0}
        return made | ({"read": "mean"} if model.pictures or model.closed else {})

    def read(self, edit: Values) -> Values:
        return edit | {name: read_source(edit[name]) for name in ("toward", "away")}

    def words(self, edit: Any, terms: Terms) -> str:
        apart = f"{source_words(edit.toward, terms)} − {source_words(edit.away, terms)}"
        return f"{terms.place(edit.hook)}: + {edit.factor:g} × ({apart}){chosen(edit.at, edit.hook, terms)}"


class ValueKind(Kind):
    name, title, about = "value", "Any value", "set or scale what a hook holds"
    edits = (Replace, Scale)
    kept = ("hook", "at")
    ways: ClassVar[dict[str, str]] = {"number": "set to", "numbers": "set to several numbers", "scale": "multiply"}
    fields = (
        hook_field("resid_post"),
        number_field("factor", "multiply by (0 removes)", 0.0, when=goes("scale")),
        number_field("value", "number", 0.0, when=goes("number")),
        Field(choose_numbers, when=goes("numbers")),
        at_field(),
    )

    def blank(self, model: Editable, place: Place) -> Values:
        hook, at = (field.begin(model, place) for field in (self.fields[0], self.fields[-1]))
        return self.start("number") | hook | at

    def way(self, values: Values) -> str:
        return "scale" if values["edit"] == "Scale" else "numbers" if isinstance(values["value"], list) else "number"

    def begin(self, way: str, form: Form) -> Values:
        return self.start(way)

    @staticmethod
    def start(way: str) -> Values:
        if way == "scale":
            return {"edit": "Scale", "factor": 0.0}
        return {"edit": "Replace", "value": 0.0 if way == "number" else [0, 0]}

    def words(self, edit: Any, terms: Terms) -> str:
        if isinstance(edit, Scale):
            return scale_words(edit, terms)
        put = f"{edit.value:g}" if isinstance(edit.value, float | int) else "given numbers"
        return f"{terms.place(edit.hook)}: replaced by {put}{chosen(edit.at, edit.hook, terms)}"


def choose_strength(form: Form) -> None:
    form.values["strength"] = form.slider("strength", form.values["strength"], 0.0, STRONGEST, 0.05)


class AdapterKind(Kind):
    name, title, about = "adapter", "Adapter", "a low-rank change of the weights"
    lacking = (
        "none that fits this model is here; open a folder with an adapter_config.json on Open a model, "
        "or train one on Adapt."
    )
    edits = (ApplyAdapter,)
    fields = (
        choice_field("adapter", "adapter", lambda form: form.model.adapters),
        Field(choose_strength, begin=lambda model, place: {"strength": 0.0 if model.merged else 1.0}),
    )

    def fits(self, model: Editable) -> bool:
        return bool(model.adapters)

    def shows(self, edit: Mapping[str, Any], model: Editable) -> bool:
        return super().shows(edit, model) and edit["adapter"] in model.adapters

    def words(self, edit: Any, terms: Terms) -> str:
        return f"adapter “{edit.adapter.partition('~')[0]}” at {edit.strength:g}"


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


def in_words(edit: Edit, terms: Terms) -> str:
    return next(kind.words(edit, terms) for kind in KINDS.values() if isinstance(edit, tuple(kind.edits)))
