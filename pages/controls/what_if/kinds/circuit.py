"""Keeps some heads and MLPs, and puts other values in place of all others."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from engine.edits import KeepParts
from engine.plurals import count_words
from pages.controls.what_if.edit_fields import (
    Field,
    Place,
    Values,
    blank_source,
    choice_field,
    parse_hook,
    read_source,
    source_field,
    what_others,
)
from pages.controls.what_if.edit_form import Form, ranges
from pages.controls.what_if.kind import EditKind, Shown, is_one_of
from views.what_if.edit_words import FEW, Terms, join_words, source_words
from views.what_if.experiment import Editable, EditableStack

HOW = {"mean": "their mean", "zero": "0", "patch": "as in another run"}
ONE_PART = re.compile(
    r"MLP ?(?P<mlp>\d{1,9})|(?P<block>\d{1,9})\.(?:\*|(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?)", re.I
)
KEPT = "parts that keep theirs: block.head, MLP block"
SAME, OTHER, BROUGHT = "this", "another", "brought"


def whole_circuit(model: Editable) -> dict[str, int]:
    """Hooks of every part of the last stack, and how many heads each has; 0: none."""
    own = model.stacks[-1]
    found = {f"{own.prefix}blocks.{layer}.attn.z": heads_of(model, own) for layer in range(own.layers)}
    return found | {parts["MLP"]: 0 for parts in own.parts if "MLP" in parts}


def heads_of(model: Editable, own: EditableStack) -> int:
    return next(one.heads for one in model.attentions if one.stack == own.stack and not one.cross)


def write_parts(kept: Mapping[str, list[int]], model: Editable) -> str:
    """The parts that keep their values: "1.*, 4.2, MLP 3"."""
    found = []
    for hook, heads in whole_circuit(model).items():
        block = block_number(hook)
        if not heads:
            found += [f"MLP {block}"] if hook not in kept else []
            continue
        own = kept.get(hook, range(heads))
        if len(own) == heads:
            found.append(f"{block}.*")
        elif own:
            found += [f"{block}.{one}" for one in ranges([head + 1 for head in own]).split(", ")]
    return ", ".join(found)


def block_number(hook: str) -> int:
    """A block's number as it is counted on screen, from 1."""
    return int(str(parse_hook(hook).layer)) + 1


def read_parts(text: str, model: Editable) -> dict[str, list[int]]:
    """The inverse of `write_parts`. Raises ValueError, with a sentence."""
    whole = whole_circuit(model)
    places = {(block_number(hook), heads > 0): hook for hook, heads in whole.items()}
    kept = {hook: set[int]() for hook in whole}
    for word in filter(None, (one.strip() for one in text.split(","))):
        found = ONE_PART.fullmatch(word)
        hook = found and places.get((int(found["mlp"] or found["block"]), found["mlp"] is None))
        if not found or not hook:
            raise ValueError(f"“{word}” is no part of this model; write heads as 4.2, 1.* or 2.1-3, and MLPs as MLP 3")
        count = whole[hook] or 1
        first = int(found["first"] or 1)
        last = int(found["last"] or found["first"] or count)
        if not 1 <= first <= last <= count:
            raise ValueError(f"“{word}”: the heads of a block go from 1 to {count}")
        kept[hook] |= {*range(first - 1, last)}
    return {hook: sorted(heads) for hook, heads in kept.items() if len(heads) < (whole[hook] or 1)}


def choose_kept(form: Form) -> None:
    now = write_parts(form.values["kept"], form.model)
    kept = form.parsed_text(KEPT, now, "4.2, 1.*, MLP 3", lambda text: read_parts(text, form.model))
    form.values["kept"] = form.values["kept"] if kept is None else kept
    if not form.values["kept"]:
        form.faults.append("Expected a part or more that takes another value, and all keep theirs; take one out.")


def choose_texts(form: Form) -> None:
    """The run or runs that other values are of."""
    values, what = form.values, what_others(form.model)
    further = values["further"]
    ways = {SAME: f"this {what}, without edits", OTHER: f"another {what}"}
    if further:
        ways[BROUGHT] = count_words(len(further) + 1, "text")
    now = BROUGHT if further else SAME if values["source"] is None else OTHER
    way = form.select("over" if values["how"] == "mean" else "taken from", ways, now, values["how"])
    if way != now:
        values |= {"further": [], "source": None if way == SAME else blank_source(form.model)}


def blank(model: Editable, place: Place) -> Values:
    own = [block_number(hook) == place.layer + 1 for hook in whole_circuit(model)]
    kept = {
        hook: [place.head] if heads and here else []
        for here, (hook, heads) in zip(own, whole_circuit(model).items(), strict=True)
    }
    return {"edit": "KeepParts", "kept": kept, "how": "mean", "source": None, "further": []}


def shows(edit: Shown, model: Editable) -> bool:
    """Tells whether an edit is of parts of the last stack."""
    return is_one_of((KeepParts,), edit, model) and edit["kept"].keys() <= whole_circuit(model).keys()


def write(values: Values, checkpoint: object) -> Values:
    return values | ({"source": None, "further": []} if values["how"] == "zero" else {})


def read(edit: Values, terms: Terms) -> Values:
    return edit | {"source": read_source(edit["source"])}


def words(edit: Any, terms: Terms) -> str:
    """Names the heads that are kept and how many other parts are replaced, by what."""
    of_heads = {hook: kept for hook, kept in edit.kept.items() if hook.endswith(".z")}
    named = [f"{block_number(hook)}.{head + 1}" for hook, kept in of_heads.items() for head in kept]
    listed = [*named[:FEW], f"{len(named) - FEW} more"] if len(named) > FEW else named
    heads = f"the heads of {count_words(len(of_heads), 'block')}" if of_heads else ""
    but = f" but {join_words(listed)}" if listed else ""
    mlps = len(edit.kept) - len(of_heads)
    replaced = " and ".join(filter(None, (count_words(mlps, "MLP") if mlps else "", heads + but)))
    if edit.how == "zero":
        return f"{replaced}: 0"
    own = "this text" if edit.source is None else source_words(edit.source, terms)
    over = count_words(len(edit.further) + 1, "text") if edit.further else own
    return f"{replaced}: {'their mean over' if edit.how == 'mean' else 'as in'} {over}"


def takes_text(form: Form) -> bool:
    """Tells whether the other values are of one other run."""
    values = form.values
    return values["how"] != "zero" and values["source"] is not None and not values["further"]


def everywhere(edit: Any, terms: Terms) -> dict[str, str]:
    return {} if edit.how == "patch" else {"other": edit.how}


FIELDS = (
    Field(choose_kept),
    choice_field("how", "all others", HOW, "mean"),
    Field(choose_texts, when=lambda form: form.values["how"] != "zero"),
    source_field("source", "the other {what}", "one of as many tokens, with another word in it", when=takes_text),
)
KIND = EditKind(
    name="circuit", place=12, title="Circuit alone", about="all other heads and MLPs replaced", edits=(KeepParts,),
    fields=FIELDS, shows=shows, blank=blank, read=read, write=write, words=words, everywhere=everywhere,
)  # fmt: skip
