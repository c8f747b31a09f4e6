"""What the tab Write asks: the next tokens of a text, and the step at which one of them was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from engine.generate import Step
from engine.prompt import text_of
from engine.stopping import Stop, stopping
from views.generate_steps import steps_payload, told
from views.generate_writing import MOST, STALE, UNKNOWN, Query, Settings, Writing
from views.payload import pack

LONGEST = 0.6  # seconds of one answer


@dataclass(frozen=True)
class Written:
    """Some tokens, the seconds the engine took for all of them, and what ended the text, if it has ended."""

    steps: list[Step]
    seconds: float
    stop: Stop | None


def answer(writing: Writing, query: Query) -> bytes:
    """Raises ValueError with a sentence."""
    if query.get("trace") != writing.made:
        raise ValueError(STALE)
    settings, begun = Settings.of(query.get("settings", {})), writing.ids(query.get("begun"))
    longest = writing.prompt.left + MOST
    match query:
        case {"ask": "write", "goal": int(goal), "patience": int() | float() as patience} if 0 < goal <= longest:
            return written_payload(writing, begun, written(writing, settings, begun, goal, float(patience) / 1000))
        case {"ask": "step"}:
            chosen = query.get("id")
            return step_payload(writing, settings, begun, None if chosen is None else writing.ids([chosen])[0])
    raise ValueError(UNKNOWN)


def written(writing: Writing, settings: Settings, begun: tuple[int, ...], goal: int, patience: float) -> Written:
    """One token at least, and as many more as `patience` (seconds) gives time for, until there are `goal`."""
    begin = lambda: writing.generating(settings, goal, begun)  # noqa: E731
    generator = writing.live.take((writing.made, settings, goal, begun), begin)
    found = list(timed(generator, min(patience, LONGEST)))
    steps = [step for step, _ in found]
    stop = ended(writing, settings, begun, goal) if not steps else steps[-1].stopped
    if stop is None:
        ids = (*begun, *(step.id for step in steps))
        writing.live.leave((writing.made, settings, goal, ids), generator)
    return Written(steps, sum(took for _, took in found), stop)


def timed(generator: Iterator[Step], patience: float) -> Iterator[tuple[Step, float]]:
    """Steps with the seconds that each took to write, until there is no patience left."""
    spent = 0.0
    while True:
        start = perf_counter()
        step = next(generator, None)
        if step is None:
            return
        took = perf_counter() - start
        yield step, took
        spent += perf_counter() - start
        if spent >= patience or step.stopped is not None:
            return


def ended(writing: Writing, settings: Settings, begun: tuple[int, ...], goal: int) -> Stop:
    """What ended a text behind which nothing follows."""
    ending = stopping(writing.prompt, goal, True, settings.strings)
    before = (*writing.prompt.ids, *begun[:-1])
    return (ending.at(before, begun[-1], len(begun) - 1) if begun else None) or ending.limit


def written_payload(writing: Writing, begun: tuple[int, ...], found: Written) -> bytes:
    header, arrays = steps_payload(writing, found.steps)
    text = text_of(writing.checkpoint, (*writing.prompt.ids, *begun, *(step.id for step in found.steps)))
    return pack({**header, "text": text, "seconds": found.seconds, "stop": told(found.stop)}, arrays)


def step_payload(writing: Writing, settings: Settings, begun: tuple[int, ...], chosen: int | None) -> bytes:
    """The step behind `begun`, at which `chosen` was, or where that is None nothing has been chosen yet."""
    step = next(writing.generating(settings, len(begun) + 1, begun), None)
    if step is None:
        stop = ended(writing, settings, begun, len(begun) + 1)
        return pack({"pieces": {}, "stop": told(stop)}, {})
    own = step if chosen is None else replace(step, id=chosen)
    header, arrays = steps_payload(writing, [own])
    return pack({**header, "chosen": chosen is not None, "stop": None if chosen is None else told(own.stopped)}, arrays)
