"""What a person changed so far: a list of edits, each switched on or off, with the way back.

An experiment is a value. Everything that changes it gives a new one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from reprlib import repr as shortened
from typing import Any

from engine.budget import budget
from engine.edits import Edit, validate_edit

REMEMBERED = 200  # states to go back to


@dataclass(frozen=True)
class Entry:
    edit: Edit
    on: bool = True


Entries = tuple[Entry, ...]


@dataclass(frozen=True)
class Experiment:
    """`past` are the lists to go back to, the latest last; `future` those that were gone back from, the next first.

    They are no part of what makes two experiments equal, nor of a link. A number that no entry has is a ValueError.
    """

    entries: Entries = ()
    past: tuple[Entries, ...] = field(default=(), compare=False, repr=False)
    future: tuple[Entries, ...] = field(default=(), compare=False, repr=False)

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Edits that are on, in their order: what `run` and `generate` take."""
        return tuple(entry.edit for entry in self.entries if entry.on)

    def add(self, edit: Edit) -> Experiment:
        """Raises ValueError for more than `budget.max_edits`, as a link could not bring them back."""
        if len(self.entries) >= budget.max_edits:
            raise ValueError(
                f"Expected at most {budget.max_edits} edits, and there are as many; remove one, or change it."
            )
        return self._with((*self.entries, Entry(edit)))

    def change(self, number: int, edit: Edit) -> Experiment:
        """`edit` in place of the one with this number, on or off as that was."""
        return self._set(number, replace(self._entry(number), edit=edit))

    def switch(self, number: int, on: bool) -> Experiment:
        return self._set(number, replace(self._entry(number), on=on))

    def switch_all(self, on: bool) -> Experiment:
        return self._with(tuple(replace(entry, on=on) for entry in self.entries))

    def remove(self, number: int) -> Experiment:
        self._entry(number)
        return self._with(self.entries[:number] + self.entries[number + 1 :])

    def move(self, number: int, to: int) -> Experiment:
        """Edits of one hook apply in their order."""
        entry = self._entry(number)
        self._entry(to)
        left = self.entries[:number] + self.entries[number + 1 :]
        return self._with((*left[:to], entry, *left[to:]))

    def clear(self) -> Experiment:
        return self._with(())

    def replace_all(self, entries: Entries) -> Experiment:
        """`entries` in place of all; `undo` brings the former ones back."""
        return self._with(entries)

    def undo(self) -> Experiment:
        """The experiment as it was before the last change; the same one where there was none."""
        if not self.past:
            return self
        return Experiment(self.past[-1], self.past[:-1], (self.entries, *self.future))

    def redo(self) -> Experiment:
        if not self.future:
            return self
        return Experiment(self.future[0], (*self.past, self.entries), self.future[1:])

    def to_value(self) -> list[dict[str, Any]]:
        """JSON for a link: what stands at its default is left out, and `off` marks what is switched off."""
        return [
            {"edit": type(entry.edit).__name__, **short(entry.edit)} | ({} if entry.on else {"off": True})
            for entry in self.entries
        ]

    @classmethod
    def from_value(cls, value: Sequence[Mapping[str, Any]]) -> Experiment:
        """The inverse of `to_value`. Raises ValueError for what is no list of edits."""
        if not isinstance(value, list):
            raise ValueError(f"an experiment must be a list of edits, got {shortened(value)}.")
        if len(value) > budget.max_edits:
            raise ValueError(
                f"an experiment must have at most {budget.max_edits} edits, got {len(value):,}; leave some out."
            )
        return cls(tuple(entry(number, data) for number, data in enumerate(value)))

    def _entry(self, number: int) -> Entry:
        if not 0 <= number < len(self.entries):
            below = len(self.entries)
            raise ValueError(f"expected an edit's number, counted from 0 and below {below}, got {number}; name one.")
        return self.entries[number]

    def _set(self, number: int, entry: Entry) -> Experiment:
        return self._with((*self.entries[:number], entry, *self.entries[number + 1 :]))

    def _with(self, entries: Entries) -> Experiment:
        return self if entries == self.entries else Experiment(entries, (*self.past, self.entries)[-REMEMBERED:])


def entry(number: int, data: Mapping[str, Any]) -> Entry:
    if not isinstance(data, dict):
        raise ValueError(f"edit {number} must be a table, got {shortened(data)}.")
    off = data.get("off", False)
    if not isinstance(off, bool):
        raise ValueError(f"off of edit {number} must be true or false, got {off!r}.")
    try:
        return Entry(validate_edit({key: part for key, part in data.items() if key != "off"}), not off)
    except ValueError as error:
        raise ValueError(f"edit {number}: {error}") from None


def short(instance: Any) -> dict[str, Any]:
    """The fields of a dataclass, those in it as well, that differ from their defaults."""
    found = {}
    for one in fields(instance):
        value = getattr(instance, one.name)
        default = one.default if one.default_factory is MISSING else one.default_factory()
        if value != default:
            found[one.name] = [plain(each) for each in value] if isinstance(value, list) else plain(value)
    return found


def plain(value: Any) -> Any:
    return short(value) if is_dataclass(value) else value
