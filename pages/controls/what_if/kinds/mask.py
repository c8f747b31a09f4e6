"""Changes who may see whom."""

from typing import Any

from engine.edits import DrawMask, PaintMask, PresetMask
from engine.plurals import count_words
from pages.controls.what_if.edit_fields import (
    ATTENTION,
    PLACE,
    Place,
    Values,
    attention_of,
    choice_field,
    drawable,
    paint_field,
    whole_number_field,
)
from pages.controls.what_if.edit_form import Form
from pages.controls.what_if.kind import EditKind, EditVariants, goes
from views.what_if.edit_words import Terms, attention_words, join_words
from views.what_if.experiment import Editable

WAYS = {
    "paint": "painted by hand",
    "draw": "drawn whole, in place of its own",
    "causal": "causal: what came before",
    "full": "full: everything",
    "window": "window: what is near",
    "causal window": "window of what came before",
    "prefix": "prefix: its first tokens for all",
}
WINDOWS = ("window", "causal window")


def way(values: Values) -> str:
    return {"PaintMask": "paint", "DrawMask": "draw"}.get(values["edit"]) or str(values.get("kind"))


def start(way: str) -> Values:
    if way == "paint":
        return {"edit": "PaintMask", "cells": [], "rows": [], "columns": [], "to": "flip"}
    if way == "draw":
        return {"edit": "DrawMask", "allowed": None}
    return {"edit": "PresetMask", "kind": way, "size": 3 if way in (*WINDOWS, "prefix") else None}


def blank(model: Editable, place: Place) -> Values:
    return start("paint") | place.values


def offers(one: str, form: Form) -> bool:
    return one != "draw" or way(form.values) == "draw" or drawable(attention_of(form.values, form.model))


def words(edit: Any, terms: Terms) -> str:
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


PAINTS = {"flip": "allow / block", "allow": "allow", "forbid": "block"}
FIELDS = (
    choice_field("to", "what is painted", PAINTS, when=goes(way, "paint")),
    whole_number_field("size", "tokens", 1, when=goes(way, "prefix")),
    whole_number_field("size", "reach", 1, when=goes(way, *WINDOWS)),
    *ATTENTION,
    paint_field("mask", "who (row) may see whom (column)", when=goes(way, "paint", "draw")),
)
KIND = EditKind(
    name="mask", place=0, title="Mask", about="who may see whom", edits=(PaintMask, DrawMask, PresetMask),
    ways=EditVariants(
        label="mask", titles=WAYS, of=way, begin=lambda way, form: start(way), kept_fields=PLACE, offers=offers
    ),
    fields=FIELDS, blank=blank, words=words,
)  # fmt: skip
