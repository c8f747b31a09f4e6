"""What is made step by step and answered in parts: when a part is due, and when the browser is to ask again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Protocol, TypeVar

from views.generate.session import STALE, UNKNOWN, Query, Writing

T = TypeVar("T")
LONGEST = 5.0  # seconds until the browser asks again
SHARED = 0.3  # seconds where something else is asked meanwhile, which waits
PACE = 0.15  # seconds of work for a part; the first holds one step


class Growing(Protocol):
    """It knows the `count` of steps that are made, of which none is made twice: a rerun of the page that breaks another
    one off comes to it while that one is still at a step, and then awaits it."""

    @property
    def count(self) -> int: ...

    @property
    def is_over(self) -> bool: ...

    def go_on(self) -> None: ...


def paced(work: Iterator[T], query: Query) -> Iterator[tuple[list[T], float]]:
    """What `work` makes, part by part, each with the seconds it took, until nothing comes (an empty part says so) or it
    is time to ask again: soon where the server is `shared`."""
    begin, pace = perf_counter(), 0.0
    longest = SHARED if query.get("shared") is True else LONGEST
    while True:
        made, seconds = timed(work, pace)
        yield made, seconds
        if not made or perf_counter() - begin > longest:
            return
        pace = PACE


def timed(work: Iterator[T], pace: float) -> tuple[list[T], float]:
    """One, and more until `pace` (seconds) is over; none where there are none left."""
    start, made = perf_counter(), list[T]()
    for one in work:
        made.append(one)
        if perf_counter() - start >= pace:
            break
    return made, perf_counter() - start


def grown(one: Growing, came: int, query: Query) -> Iterator[tuple[int, int]]:
    """Goes on, and yields from which step to which there is a part behind those that `came`."""
    for _ in paced(steps(one), query):
        if one.count > came:
            yield came, one.count
            came = one.count
        if one.is_over:
            return


def steps(one: Growing) -> Iterator[int]:
    while not one.is_over:
        one.go_on()
        yield one.count


def asked_here(writing: Writing, query: Query) -> None:
    """Raises ValueError for a question about what is gone."""
    if query.get("trace") != writing.made:
        raise ValueError(STALE)


def came_of(query: Query, most: int) -> int:
    """How many steps the browser has; it asks for those behind, of `most` at most. Raises ValueError."""
    came = query.get("from", 0)
    if type(came) is int and 0 <= came < most:
        return came
    raise ValueError(UNKNOWN)


def steps_of(query: Query) -> int | None:
    """How many it asks for at once; None is all of them. Raises ValueError."""
    most = query.get("steps")
    if most is None or (type(most) is int and most > 0):
        return most
    raise ValueError(UNKNOWN)


def looked_at(query: Query, ask: str) -> bool:
    """Whether a browser that takes a file away has something that came in parts, which is then in the file."""
    kept = query.get("kept")
    coming = kept.get("coming") if isinstance(kept, Mapping) else None
    return isinstance(coming, Mapping) and bool(coming.get(ask))
