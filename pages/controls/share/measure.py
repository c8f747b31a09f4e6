"""Measurements that take seconds: one after the other, drawn as they come, until a person stops them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import inf
from time import perf_counter
from typing import Any, Generic, LiteralString, TypeVar

import streamlit as st

from engine.plurals import count_words, write_duration
from pages.controls.state.history import is_fragment
from pages.controls.state.session import SessionValue
from views.core.markdown import escape_markdown

T = TypeVar("T")
CACHED = 0.002  # seconds below which a step was measured before
PACE = 0.2  # seconds between two drawings
SLICE = 0.5  # seconds of measuring, after which a button is heard
WAIT = 1.0  # seconds between two looks at what another machine measures
QUICK = 1.0  # seconds of measuring that nobody is told of
KNOWN = 1.0  # seconds of measuring after which its pace tells how long the rest takes
TOLD, ASKED = 5.0, 120.0  # seconds from which on the rest is told, and begins only once a person says so


@dataclass
class Measurement(Generic[T]):
    """Measurements so far of `subject`; another subject begins anew. `seconds` were spent on `timed` of them, and
    `agreed` is whether a person has asked for all, however long that takes."""

    subject: Hashable
    results: list[T] = field(default_factory=list)
    is_active: bool = False
    seconds: float = 0.0
    timed: int = 0
    agreed: bool = False

    def toggle(self) -> None:
        self.agreed = not self.is_active
        if not self.is_active:
            self.results.clear()
        self.is_active = not self.is_active

    def seconds_left(self, count: int) -> float:
        """Seconds that the rest of `count` takes at the pace so far; 0 while too little is measured to say."""
        return self.seconds / self.timed * (count - len(self.results)) if self.timed and self.seconds > KNOWN else 0.0

    def go_on(self, work: Iterable[T], draw: Callable[[], object], seconds: float = inf) -> None:
        """Measures what is missing of `work`, if a person has started it, and draws. A rerun of the page breaks it off,
        and goes on where it stands unless the button stopped it. Call it last: nothing below it is drawn meanwhile.

        In a fragment the click on a button breaks nothing off: there the page runs again after so many `seconds`."""
        if not self.is_active:
            return
        drawn, begun = 0.0, perf_counter()
        last = begun
        for one in islice(iter(work), len(self.results), None):
            self.results.append(one)
            now = perf_counter()
            if now - last > CACHED:
                self.seconds, self.timed = self.seconds + now - last, self.timed + 1
            if now - drawn > PACE:
                draw()
                drawn = now
            last = perf_counter()
            if last - begun > seconds:
                st.rerun(scope="fragment" if is_fragment() else "app")
        self.is_active = False
        st.rerun()


MEASURED = SessionValue[dict[str, Measurement[Any]]]("measurements by name", dict)


def measurement(name: str, subject: Hashable, is_active: bool = False) -> Measurement[Any]:
    """Measurements of a subject; `is_active` tells whether they begin by themselves."""
    kept = MEASURED.get()
    if name not in kept or kept[name].subject != subject:
        kept[name] = Measurement(subject, is_active=is_active)
    return kept[name]


def is_measured(name: str, subject: Hashable) -> bool:
    """Tells whether measurements of a subject have begun."""
    return name in (kept := MEASURED.get()) and kept[name].subject == subject


def stop_measuring() -> None:
    for one in MEASURED.get().values():
        one.is_active = False


def measure_button(name: str, measuring: Measurement[Any], first: LiteralString = "Measure") -> None:
    label = "Stop" if measuring.is_active else "Measure again" if measuring.results else first
    st.button(label, key=f"measure {name}", type="primary", on_click=measuring.toggle)


def take_steps(name: LiteralString, subject: Hashable, steps: Sequence[Callable[[], Any]]) -> None:
    """Takes steps whose results are kept: those of QUICK at once, the others with their progress."""
    begun = perf_counter()
    if not is_measured(name, subject):
        for step in steps:
            if perf_counter() - begun > QUICK:
                break
            step()
        else:
            return
    measure_steps(name, subject, steps)


def measure_steps(
    name: str,
    subject: Hashable,
    steps: Sequence[Callable[[], Any]],
    partial: bool = False,
    wait: Callable[[int], str] = lambda step: "",
) -> None:
    """Draws how far the steps are, until all are done; what is below is not drawn before, but for what can be drawn of
    a `partial` result once somebody stopped it, or while a step waits for another machine: `wait` says what for, empty
    where it does not. Those that are done once the run keeps, so that it goes on where it was stopped."""
    measuring = measurement(name, subject, is_active=True)
    if len(measuring.results) == len(steps):
        return
    left = measuring.seconds_left(len(steps))
    measuring.is_active = measuring.is_active and (measuring.agreed or left <= ASKED)
    place = st.empty()
    st.button("Stop" if measuring.is_active else "Go on", key=f"measure {name}", on_click=measuring.toggle)

    def draw() -> None:
        done, left = len(measuring.results), measuring.seconds_left(len(steps))
        more = f", about {write_duration(left)} more" if left > TOLD else ""
        place.progress(done / len(steps), f"{done} of {count_words(len(steps), 'part')} measured{more}")

    def take_ready() -> Iterator[Any]:
        for number, step in enumerate(steps):
            if number >= len(measuring.results) and wait(number):
                st.rerun(scope="fragment" if is_fragment() else "app")
            yield step()

    def follow() -> None:
        if says := wait(len(measuring.results)):
            st.caption(escape_markdown(says))
        else:
            st.rerun()

    draw()
    if measuring.is_active and wait(len(measuring.results)):
        st.fragment(follow, run_every=WAIT)()
    else:
        measuring.go_on(take_ready(), draw, SLICE)
    if not (partial and measuring.results):
        st.stop()
