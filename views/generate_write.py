"""What the tab Write asks: the next tokens of a text, and the step at which one of them was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from engine.generate import Step
from engine.stopping import Stop, stopping
from views.generate_steps import steps_payload, told
from views.generate_writing import MOST, STALE, UNKNOWN, Query, Settings, Writing
from views.payload import pack

LONGEST = 5.0  # seconds until the browser asks again
SHARED = 0.3  # seconds where another tab is open, whose questions wait meanwhile
PACE = 0.15  # seconds of writing for a part; the first holds one token


@dataclass(frozen=True)
class Written:
    """Some tokens behind `before` of them, the seconds the engine took for all, and what ended the text, if it has."""

    before: int
    steps: list[Step]
    seconds: float
    stop: Stop | None


def parts(writing: Writing, query: Query) -> Iterator[bytes]:
    """The next tokens, some at a time, until the text has `goal` or has ended, or it is time to ask again: soon where
    the server is `shared`. Raises ValueError with a sentence."""
    settings, begun = asked(writing, query)
    goal = query.get("goal")
    if type(goal) is not int or not 0 < goal <= writing.prompt.left + MOST:
        raise ValueError(UNKNOWN)
    longest = SHARED if query.get("shared") is True else LONGEST
    for found in written(writing, settings, begun, goal, longest):
        yield written_payload(writing, found)


def answer(writing: Writing, query: Query) -> bytes:
    """Raises ValueError with a sentence."""
    settings, begun = asked(writing, query)
    chosen = query.get("id")
    return step_payload(writing, settings, begun, None if chosen is None else writing.ids([chosen])[0])


def asked(writing: Writing, query: Query) -> tuple[Settings, tuple[int, ...]]:
    if query.get("trace") != writing.made:
        raise ValueError(STALE)
    return Settings.of(query.get("settings", {})), writing.ids(query.get("begun"))


def written(
    writing: Writing, settings: Settings, begun: tuple[int, ...], goal: int, longest: float
) -> Iterator[Written]:
    begin = lambda: writing.generating(settings, goal, begun)  # noqa: E731
    generator = writing.live.take((writing.made, settings, goal, begun), begin)
    start, ids, pace = perf_counter(), begun, 0.0
    while True:
        found = list(timed(generator, pace))
        steps = [step for step, _ in found]
        stop = steps[-1].stopped if steps else ended(writing, settings, ids, goal)
        late = stop is not None or perf_counter() - start > longest
        before, ids, pace = len(ids), (*ids, *(step.id for step in steps)), PACE
        if late and stop is None:
            writing.live.leave((writing.made, settings, goal, ids), generator)
        yield Written(before, steps, sum(took for _, took in found), stop)
        if late:
            return


def timed(generator: Iterator[Step], pace: float) -> Iterator[tuple[Step, float]]:
    """Steps with the seconds that each took to write: one, and more until `pace` (seconds) is over."""
    spent = 0.0
    while True:
        start = perf_counter()
        step = next(generator, None)
        if step is None:
            return
        took = perf_counter() - start
        yield step, took
        spent += perf_counter() - start
        if spent >= pace or step.stopped is not None:
            return


def ended(writing: Writing, settings: Settings, begun: tuple[int, ...], goal: int) -> Stop:
    """What ended a text behind which nothing follows."""
    ending = stopping(writing.prompt, goal, True, settings.strings)
    before = (*writing.prompt.ids, *begun[:-1])
    return (ending.at(before, begun[-1], len(begun) - 1) if begun else None) or ending.limit


def written_payload(writing: Writing, found: Written) -> bytes:
    header, arrays = steps_payload(writing, found.steps)
    own = {"before": found.before, "seconds": found.seconds, "stop": told(found.stop)}
    return pack({**header, **own}, arrays)


def step_payload(writing: Writing, settings: Settings, begun: tuple[int, ...], chosen: int | None) -> bytes:
    """The step behind `begun`, at which `chosen` was, or where that is None nothing has been chosen yet."""
    step = next(writing.generating(settings, len(begun) + 1, begun), None)
    if step is None:
        stop = ended(writing, settings, begun, len(begun) + 1)
        return pack({"pieces": {}, "stop": told(stop)}, {})
    own = step if chosen is None else replace(step, id=chosen)
    header, arrays = steps_payload(writing, [own])
    return pack({**header, "chosen": chosen is not None, "stop": None if chosen is None else told(own.stopped)}, arrays)
