"""What a link can hold of the page Compare: of each side the model or the step of a run, what it reads, and edits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pages.controls.model_input.model_input import EMPTY
from pages.controls.model_input.parameters import FIELDS, MODEL
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Choice, Hideable, Parameter, Text

LETTERS = "ABCD"
TOGETHER = "sides together"  # the key of what swaps, copies and adds sides
ELEMENTS = {"edits": ".st-key-{0}_edits-button", "picture": ".st-key-{0}_picture, .st-key-{0}_own-popover"}
LAST = -1  # step of a side whose run kept none
SIDE = (MODEL, Choice("step", LAST, {LAST: "the last step"}, label="step", hidden_as="the step"), *FIELDS)
EDITS = Text("edits", "", READABLE, hidden_as="edits")  # JSON, as a person may write it too
OWN = tuple(parameter.name for parameter in (*SIDE, EDITS))


def key(letter: str, field: str) -> str:
    return f"{letter.lower()}_{field}"


def declare(letter: str, parameter: Parameter) -> Parameter:
    """A parameter of a side; those after B are there once they have a model."""
    default = "" if letter in "CD" and parameter is MODEL else parameter.default
    label: Any = f"{parameter.label} of {letter}"
    hidden: Any = f"{letter}: {parameter.hidden_as}"
    name = key(letter, parameter.name)
    return replace(
        parameter, name=name, default=default, label=label, carried=False, hidden_as=hidden,
        element=ELEMENTS.get(parameter.name, "").format(letter.lower()),
        goes_with=(TOGETHER, f"example of {letter}"),
    )  # fmt: skip


COMPARE = PageState(
    "compare",
    Hideable(TOGETHER, hidden_as="swap, copy, add"),
    *(declare(letter, one) for letter in LETTERS for one in (*SIDE, EDITS)),
)


def value(letter: str, field: str) -> Any:
    """Value of a field of a side, drawn in this run or not, also in a callback."""
    name = key(letter, field)
    return COMPARE.now(name) if name in COMPARE.parameters else EMPTY.get(field, "")


def fill(letter: str, values: dict[str, Any]) -> None:
    """Sets fields of a side, from a callback."""
    for field, one in values.items():
        COMPARE.choose(key(letter, field), one)
