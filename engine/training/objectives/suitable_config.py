"""A model for another objective: what that leaves no choice about is as it must be, and all else stays."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from functools import reduce
from typing import Any

from engine.training.objectives import find_objective
from engine.training.objectives.kind import PRESENT


def suit_model(kind: str, data: str, model: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """`model` as plain data, for the objective `kind` on the table `data`; and what of it is another now, each as
    "attention.mask is full". An encoder that is missing is as deep and wide as the decoder."""
    found, told = deepcopy(dict(model)), []
    objective = find_objective(kind)
    for key, wanted in objective.needs_of(data).items():
        table, last = find_table(found, key)
        if table[last] == wanted or (wanted is PRESENT and (table[last] is not None or last != "encoder")):
            continue
        table[last] = encoder_like(found) if wanted is PRESENT else wanted
        told.append(f"{key} {describe_need(wanted)}")
    for key, instead in objective.never.items():
        table, last = find_table(found, key)
        if table[last] in instead:
            table[last] = instead[table[last]]
            told.append(f"{key} {describe_need(table[last])}")
    if objective.two_axes and found["positions"]["axes"] == 1 and can_have_two_axes(found):
        found["positions"]["axes"] = 2
        told.append(f"positions.axes {describe_need(2)}")
    return found, tuple(told)


def find_table(model: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    """The table in which a dotted key stands, and its last part."""
    *way, last = key.split(".")
    return reduce(lambda table, part: table[part], way, model), last


def can_have_two_axes(model: Mapping[str, Any]) -> bool:
    """Tells whether its positions go with `Infill` as GLM has it, one half of what is turned for each axis."""
    positions, attention = model["positions"], model["attention"]
    width = attention["d_head"] or model["d_model"] // attention["heads"]
    turned = width // 2 if positions["turned"] is None else positions["turned"]
    alike = positions["scaling"] is None and positions["other"] is None
    rotary = positions["kind"] == "rotary" and alike and turned % 2 == 0 and turned <= width // 2
    return rotary or positions["kind"] == "learned"


def encoder_like(decoder: Mapping[str, Any]) -> dict[str, Any]:
    attention = {"heads": decoder["attention"]["heads"], "mask": "full"}
    return {"layers": decoder["layers"], "attention": attention, "mlp": deepcopy(decoder["mlp"])}


def describe_need(wanted: Any) -> str:
    if wanted is PRESENT or wanted is None:
        return "is added" if wanted is PRESENT else "is left out"
    return f"is {'yes' if wanted is True else 'no' if wanted is False else wanted}"
