"""Says what heads attend to. The form's `to` is the shape, `from` the other head, `brush` the weight to paint."""

from typing import Any

from engine.edits import DrawPattern, PaintPattern, SetPattern
from engine.plurals import count_words
from pages.controls.what_if.edit_fields import (
    PLACE,
    Field,
    Place,
    Values,
    attention_of,
    blocks,
    choice_field,
    choose_attention,
    choose_block,
    choose_heads,
    choose_one_block,
    drawable,
    paint_field,
    parse_hook,
)
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind, Shown, goes, is_one_of
from views.what_if.edit_words import Terms, attention_words
from views.what_if.experiment import Editable

EDITS = (SetPattern, PaintPattern, DrawPattern)


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


def shape(values: Values) -> str:
    return str(values["to"])


def choose_other_head(form: Form) -> None:
    """Draws the choice of the head to change, and of the head whose attention it takes over."""
    values, own = form.values, attention_of(form.values, form.model)
    values["heads"] = [form.head("head", own.heads, (values["heads"] or [0])[0], own.label)]
    layer = form.select("as in block", blocks(own.layers), values["from"]["layer"], own.label)
    values["from"] = {"layer": layer, "head": form.head("its head", own.heads, values["from"]["head"], own.label)}


def choose_key(form: Form) -> None:
    """The position of the one token that an attention reads."""
    own = attention_of(form.values, form.model)
    form.values["position"] = form.token("to", own.keys, form.values["position"], own.label)


def choose_brush(form: Form) -> None:
    """The weight to paint; of rows that sum to 1, from 0 to 1."""
    bounds: Values = {} if form.values["free"] else {"least": 0.0, "most": 1.0}
    form.values["brush"] = form.number("weight to paint", form.values["brush"], **bounds)


def is_other_head(edit: Shown) -> bool:
    return (
        edit["edit"] == "Patch"
        and edit["source"] is None
        and str(edit.get("source_hook")).endswith(".pattern")
        and isinstance(edit["at"].get("head"), int)
        and isinstance((edit.get("source_at") or {}).get("head"), int)
    )


def shows(edit: Shown, model: Editable) -> bool:
    return is_one_of(EDITS, edit, model) or is_other_head(edit)


def start(place: Values) -> Values:
    values: Values = {"to": "previous", "position": 0, "from": {"layer": 0, "head": 0}}
    return values | {"cells": [], "weights": [], "drawn": None, "brush": 1.0, "free": False} | place


def blank(model: Editable, place: Place) -> Values:
    return start(place.values | {"heads": [place.head]})


def read(edit: Values, terms: Terms) -> Values:
    if is_other_head(edit):
        here, there = parse_hook(edit["hook"]), parse_hook(edit["source_hook"])
        place = {"layer": here.layer, "heads": [edit["at"]["head"]], "stack": here.stack}
        values = start(place | {"cross": here.part.startswith("cross_attn")})
        return values | {"to": "other", "from": {"layer": there.layer, "head": edit["source_at"]["head"]}}
    values = start({name: edit[name] for name in PLACE})
    if edit["edit"] == "SetPattern":
        return values | {"to": edit["to"], "position": edit["position"] or 0}
    values["free"] = edit["free"]
    if edit["edit"] == "DrawPattern":
        return values | {"to": "drawn", "drawn": edit["weights"]}
    return values | {"to": "painted", "cells": edit["cells"], "weights": edit["weights"]}


def write(values: Values, checkpoint: object) -> Values:
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


def words(edit: Any, terms: Terms) -> str:
    heads = attention_words(edit)
    match edit:
        case SetPattern(to="position", position=int(position)):
            return f"{heads}: attend to {terms.token(position, terms.read_by(edit))} alone"
        case SetPattern(to=to):
            told = {"uniform": "evenly to all they may see", "itself": "to the token itself alone"}
            return f"{heads}: attend {told.get(to, f'to the {to} token alone')}"
        case PaintPattern(cells=[[query, key]], weights=[weight]):
            pair = f"{terms.token(query, edit.stack)} looks at {terms.token(key, terms.read_by(edit))}"
            return f"{heads}: {pair} with {100 * weight:g} %"
        case PaintPattern(cells=cells):
            rows = sorted({row for row, _ in cells})
            painted = f"{count_words(len(cells), 'weight')} painted, {'row' if len(rows) == 1 else 'rows'} of"
            return f"{heads}: {painted} {terms.tokens(rows, edit.stack)}"
    return f"a drawn pattern, {heads}"


SUMS = {False: "go on summing to 1", True: "as painted, whatever their sum"}
PAINTED = goes(shape, "painted", "drawn")
FIELDS = (
    choice_field("to", "attend", shapes),
    Field(choose_attention),
    Field(choose_block, when=lambda form: form.values["to"] != "other"),
    Field(choose_one_block, when=goes(shape, "other")),
    Field(choose_other_head, when=goes(shape, "other")),
    Field(choose_heads, when=lambda form: form.values["to"] != "other"),
    Field(choose_key, when=goes(shape, "position")),
    Field(choose_brush, when=PAINTED),
    choice_field("free", "rows", SUMS, when=PAINTED),
    paint_field("pattern", "how much each token (row) looks at each (column)", when=PAINTED),
)
KIND = EditKind(
    name="pattern", place=3, title="Pattern", about="say what heads attend to", edits=EDITS, fields=FIELDS,
    shows=shows, blank=blank, read=read, write=write, words=words,
)  # fmt: skip
