"""What the tab Write asks: the next tokens of a text, and the step at which one of them was chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

from engine.generation.generate import Step
from engine.generation.stopping import Stop, stopping
from views.core.payload import pack
from views.generate.session import MOST, UNKNOWN, Query, Settings, Writing
from views.generate.steps import steps_payload, told
from views.generate.streaming import asked_here, paced


@dataclass(frozen=True)
class Written:
    """Some tokens behind `before` of them, the seconds the engine took for all, and what ended the text, if it has."""

    before: int
    steps: list[Step]
    seconds: float
    stop: Stop | None


def parts(writing: Writing, query: Query) -> Iterator[bytes]:
    """The next tokens, some at a time, until the text has `goal` or has ended, or it is time to ask again. Raises
    ValueError with a sentence."""
    settings, begun = asked(writing, query)
    goal = query.get("goal")
    if type(goal) is not int or not 0 < goal <= writing.prompt.left + MOST:
        raise ValueError(UNKNOWN)
    for found in written(writing, settings, begun, goal, query):
        yield written_payload(writing, found)


def answer(writing: Writing, query: Query) -> bytes:
    """Raises ValueError with a sentence."""
    settings, begun = asked(writing, query)
    chosen = query.get("id")
    return step_payload(writing, settings, begun, None if chosen is None else writing.ids([chosen])[0])


def asked(writing: Writing, query: Query) -> tuple[Settings, tuple[int, ...]]:
    asked_here(writing, query)
    return Settings.of(query.get("settings", {})), writing.ids(query.get("begun"))


def written(
    writing: Writing, settings: Settings, begun: tuple[int, ...], goal: int, query: Query
) -> Iterator[Written]:
    with writing.live.holding((writing.made, settings, goal), Text) as text:
        turn = text.taken()
        before = begun
        for steps, seconds in paced(text.behind(begun, turn, partial(writing.generating, settings, goal)), query):
            if not steps and text.turn != turn:
                return
            ids = (*before, *(step.id for step in steps))
            stop = steps[-1].stopped if steps else ended(writing, settings, ids, goal)
            yield Written(len(before), steps, seconds, of_this_run(stop, settings))
            if stop is not None:
                return
            before = ids


def of_this_run(stop: Stop | None, settings: Settings) -> Stop | None:
    """A text that is written on has more tokens than were asked for last."""
    return replace(stop, count=settings.most) if stop is not None and stop.kind == "max_tokens" else stop


class Text:
    """What waits to be written on where it stands. Who takes it may come while a rerun of the page that is broken
    off is still at it."""

    def __init__(self) -> None:
        self.ids: tuple[int, ...] | None = None  # behind which `last` comes
        self.last: Step | None = None
        self.coming: Iterator[Step] = iter(())
        self.turn = 0
        self.one_at_a_time = Lock()

    def taken(self) -> int:
        self.turn += 1
        return self.turn

    def behind(
        self, begun: tuple[int, ...], turn: int, begin: Callable[[tuple[int, ...]], Iterator[Step]]
    ) -> Iterator[Step]:
        """Until somebody else has taken it."""
        ids = begun
        while (step := self.step(ids, turn, begin)) is not None:
            yield step
            ids = (*ids, step.id)

    def step(
        self, ids: tuple[int, ...], turn: int, begin: Callable[[tuple[int, ...]], Iterator[Step]]
    ) -> Step | None:
        """The one behind `ids`. Where it stands elsewhere, it begins anew, but for a token that nobody got."""
        with self.one_at_a_time:
            if turn != self.turn:
                return None
            if self.ids == ids and self.last is not None:
                return self.last
            if self.last is None or self.ids is None or (*self.ids, self.last.id) != ids:
                self.coming = begin(ids)
            self.ids, self.last = ids, next(self.coming, None)
            return self.last


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
