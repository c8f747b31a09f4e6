"""The form of one edit: the fields that its kind asks for, as widgets, and what is painted by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, LiteralString, TypeVar
from zlib import crc32

import streamlit as st

from engine.edits import Edit
from engine.json_text import parse_json
from pages.controls.state.session import event_value
from views.core.component import view
from views.core.markdown import escape_markdown
from views.what_if.experiment import Editable, EditableAttention

SELECT, NUMBER, TEXT = 200, 130, 300  # CSS pixels of a field
MANY = 60  # tokens from which on they are searched in a list
LARGEST = 2**53 - 1  # whole number that a browser holds
PAINTED = ("cells", "rows", "columns", "allowed", "weights", "drawn", "free")  # fields that the painter writes

T = TypeVar("T")

painter = view("what_if/painter", events=("painted",))


@dataclass
class Draft:
    """The edit in the form. `kind` names one of `kinds`, `values` are its fields, `row` the token that is looked at.

    `number` counts the edit among those that are made, None of a new one; `opened` is that edit as it was. `freed`
    counts how often the painter, and not its field, said whether rows sum to 1.
    """

    kind: str
    values: dict[str, Any]
    row: int
    number: int | None = None
    opened: Edit | None = None
    serial: int = 0
    refused: str = ""
    freed: int = 0


@dataclass
class Form:
    """Widgets that write into the draft's values. `faults` are sentences about fields that do not read,
    `waits` says what is to be done before there is an edit.

    Every field takes `about`: what else decides what it offers. Another `about` begins with the draft's value again.
    """

    model: Editable
    draft: Draft
    trace: str
    faults: list[str] = field(default_factory=list)
    waits: LiteralString = ""

    def __post_init__(self) -> None:
        self.above = st.container()
        self.line = st.container(horizontal=True, vertical_alignment="bottom", gap="small")
        self.below = st.container(gap="small")

    @property
    def values(self) -> dict[str, Any]:
        return self.draft.values

    def replace(self, values: Mapping[str, Any]) -> None:
        kept = dict(values)
        self.values.clear()
        self.values.update(kept)

    def key(self, label: LiteralString, *about: Any) -> str:
        return f"edit {self.draft.serial} {label} {crc32(repr(about).encode())}"

    def select(self, label: LiteralString, options: Mapping[T, str], value: Any, *about: Any) -> T:
        names = list(options)
        return self.line.selectbox(
            label,
            names,
            index=names.index(value) if value in names else 0,
            format_func=options.__getitem__,
            key=self.key(label, list(options.values()), *about),
            width=SELECT,
        )

    def whole_number(
        self,
        label: LiteralString,
        value: int | None,
        least: int = -LARGEST,
        most: int = LARGEST,
        *about: Any,
        hint: str = "",
    ) -> int | None:
        """A whole number, within the bounds; None where the field is empty."""
        begun = None if value is None else min(max(int(value), least), most)
        return self.line.number_input(
            label,
            min_value=least,
            max_value=most,
            value=begun,
            step=1,
            placeholder=hint or None,
            key=self.key(label, least, most, *about),
            width=NUMBER,
        )

    def number(
        self,
        label: LiteralString,
        value: float | None,
        *about: Any,
        least: float | None = None,
        most: float | None = None,
    ) -> float | None:
        begun = None if value is None else float(value)
        if begun is not None and ((least is not None and begun < least) or (most is not None and begun > most)):
            begun = least
        return self.line.number_input(
            label,
            min_value=least,
            max_value=most,
            value=begun,
            step=0.1,
            format="%g",
            key=self.key(label, least, most, *about),
            width=NUMBER,
        )

    def slider(self, label: LiteralString, value: float, least: float, most: float, step: float) -> float:
        return self.line.slider(label, least, most, float(value), step, key=self.key(label), width=SELECT)

    def text(self, label: LiteralString, value: str, hint: str, *about: Any) -> str:
        return self.line.text_input(label, value, placeholder=hint, key=self.key(label, *about), width=TEXT)

    def parsed_text(
        self, label: LiteralString, value: str, hint: str, read: Callable[[str], T], *about: Any
    ) -> T | None:
        """Reads a text with `read`; None where that raises ValueError, whose sentence is one of `faults`."""
        try:
            return read(self.text(label, value, hint, *about))
        except ValueError as error:
            self.faults.append(f"{label}: {error}")
            return None

    def heads(self, label: LiteralString, count: int, chosen: Sequence[int], *about: Any, first: int = 1) -> list[int]:
        """`first` is what the first of them is called."""
        found = self.line.pills(
            label,
            range(count),
            selection_mode="multi",
            default=[head for head in chosen if 0 <= head < count],
            format_func=lambda head: str(head + first),
            key=self.key(label, count, *about),
        )
        return sorted(found)

    def head(self, label: LiteralString, count: int, chosen: int, *about: Any) -> int:
        return self.select(label, {head: str(head + 1) for head in range(count)}, chosen, *about)

    def tokens(self, label: LiteralString, pieces: Sequence[str], chosen: Iterable[int], *about: Any) -> list[int]:
        """Positions, in order; none stand for all."""
        names, begun = distinct(pieces), [i for i in chosen if 0 <= i < len(pieces)]
        label, key = f"{label} (all if none is chosen)", self.key(label, pieces, *about)
        if len(pieces) > MANY:
            found = self.below.multiselect(
                label, range(len(pieces)), begun, names.__getitem__, key=key, placeholder="all"
            )
        else:
            found = self.below.pills(
                label,
                range(len(pieces)),
                selection_mode="multi",
                default=begun,
                format_func=lambda i: escape_markdown(names[i]),
                key=key,
            )
        return sorted(found)

    def token(self, label: LiteralString, pieces: Sequence[str], chosen: int, *about: Any) -> int:
        names, key = distinct(pieces), self.key(label, pieces, *about)
        begun = min(max(chosen, 0), len(pieces) - 1)
        if len(pieces) > MANY:
            return self.below.selectbox(label, range(len(pieces)), begun, names.__getitem__, key=key)
        return self.below.pills(
            label,
            range(len(pieces)),
            default=begun,
            format_func=lambda i: escape_markdown(names[i]),
            required=True,
            key=key,
        )

    def paint(self, mode: str, label: LiteralString, own: EditableAttention, brush: float | None = None) -> None:
        """Mounts the painter: of "mask", who may see whom; of "pattern", how much, with the weight `brush`."""
        draft, values = self.draft, self.values
        key = f"edit {draft.serial} painter"

        def take() -> None:
            painted = event_value(key, "painted")
            if isinstance(painted, Mapping):
                draft.freed += painted.get("free", values.get("free")) != values.get("free")
                values.update({name: painted[name] for name in PAINTED if name in painted and name in values})

        if not any(values.get(name) for name in PAINTED if name != "free"):
            self.waits = "Paint a cell first."
        named = {"stack": own.stack, "cross": own.cross, "rows": list(own.rows), "keys": list(own.keys)}
        data = {"mode": mode, "edit": values, "own": named, "row": draft.row, "brush": brush, "label": label}
        with self.below:
            st.caption(label)
            painter(data | {"number": draft.number, "trace": self.trace}, key=key, on={"painted": take})


def distinct(pieces: Sequence[str]) -> list[str]:
    """Tokens as a person tells them apart: with its position where one stands several times."""
    counts = {piece: len(list(group)) for piece, group in groupby(sorted(pieces))}
    return [piece if counts[piece] == 1 and piece.strip() else f"{piece} ({i})" for i, piece in enumerate(pieces)]


def ranges(indices: Sequence[int]) -> str:
    """[0, 1, 2, 7] -> "0-2, 7"."""
    found: list[list[int]] = []
    for i in indices:
        if found and found[-1][1] == i - 1:
            found[-1][1] = i
        else:
            found.append([i, i])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def read_ranges(text: str, size: int) -> list[int]:
    """ "0-2, 7" -> [0, 1, 2, 7], as far as an axis of `size` goes. Raises ValueError, with a sentence."""
    found: set[int] = set()
    for part in text.replace(",", " ").split():
        first, dash, last = part.partition("-")
        if not first.isdecimal() or not (last.isdecimal() or not dash):
            raise ValueError(f"write numbers from 0 to {size - 1}, such as 0-3, 7")
        found.update(range(int(first), min(int(last or first), size - 1) + 1))
    return sorted(i for i in found if i < size)


def read_numbers(text: str) -> list[Any]:
    """ "0, 0.5", or lists in lists as JSON has them. Raises ValueError, with a sentence."""
    stripped = text.strip()
    try:
        found = parse_json(stripped if stripped.startswith("[") else f"[{stripped}]")
    except ValueError:
        found = []
    if not isinstance(found, list) or not found:
        raise ValueError("write numbers such as 0, 0.5, 1")
    return found
