"""Measurements that take seconds: one after the other, drawn as they come, until a person stops them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from time import perf_counter
from typing import Any, Generic, LiteralString, TypeVar

import streamlit as st

from pages.controls.state.history import is_fragment
from pages.controls.state.session import Remembered

T = TypeVar("T")
PACE = 0.2  # seconds between two drawings


@dataclass
class Measurement(Generic[T]):
    """Measurements so far of `subject`; another subject begins anew."""

    subject: Hashable
    found: list[T] = field(default_factory=list)
    is_active: bool = False

    def toggle(self) -> None:
        if not self.is_active:
            self.found.clear()
        self.is_active = not self.is_active

    def go_on(self, work: Iterable[T], draw: Callable[[], object], seconds: float = inf) -> None:
        """Measures what is missing of `work`, if a person has started it, and draws. A rerun of the page breaks it off,
        and goes on where it stands unless the button stopped it. Call it last: nothing below it is drawn meanwhile.

        In a fragment the click on a button breaks nothing off: there the page runs again after so many `seconds`."""
        if not self.is_active:
            return
        drawn, begun = 0.0, perf_counter()
        for one in islice(iter(work), len(self.found), None):
            self.found.append(one)
            if perf_counter() - drawn > PACE:
                draw()
                drawn = perf_counter()
            if perf_counter() - begun > seconds:
                st.rerun(scope="fragment" if is_fragment() else "app")
        self.is_active = False
        st.rerun()


MEASURED = Remembered[dict[str, Measurement[Any]]]("measurements", dict)  # by their names


def measurement(name: str, subject: Hashable, is_active: bool = False) -> Measurement[Any]:
    """Measurements of a subject; `is_active` tells whether they begin by themselves."""
    kept = MEASURED.get()
    if name not in kept or kept[name].subject != subject:
        kept[name] = Measurement(subject, is_active=is_active)
    return kept[name]


def stop_measuring() -> None:
    for one in MEASURED.get().values():
        one.is_active = False


def measure_button(name: str, measuring: Measurement[Any], first: LiteralString = "Measure") -> None:
    label = "Stop" if measuring.is_active else "Measure again" if measuring.found else first
    st.button(label, key=f"measure {name}", type="primary", on_click=measuring.toggle)
