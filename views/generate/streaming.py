"""What comes step by step and is answered in parts: when a part is due, when the browser is to ask again, and what
waits meanwhile."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from time import perf_counter
from typing import Any, Protocol, TypeVar

from views.core.questions import UNKNOWN

T = TypeVar("T")
LONGEST = 5.0  # seconds until the browser asks again
SHARED = 0.3  # seconds where something else is asked meanwhile, which waits
WAITING = 2  # of one visit; each holds a KV cache
PACE = 0.15  # seconds of work for a part; the first holds one step


class StepStream(Protocol):
    """Keeper of the `count` of steps that are made, of which none is made twice: a rerun of the page that breaks
    another one off comes to it while that one is still at a step, and then awaits it."""

    @property
    def count(self) -> int: ...

    @property
    def is_over(self) -> bool: ...

    def go_on(self) -> None: ...


def pace_parts(work: Iterator[T], shared: bool) -> Iterator[tuple[list[T], float]]:
    """Yields what `work` makes, part by part, each with the seconds it took, until nothing comes (an empty part says
    so) or it is time to ask again: soon where the server is `shared`."""
    begin, pace = perf_counter(), 0.0
    longest = SHARED if shared else LONGEST
    while True:
        made, seconds = time_part(work, pace)
        yield made, seconds
        if not made or perf_counter() - begin > longest:
            return
        pace = PACE


def time_part(work: Iterator[T], pace: float) -> tuple[list[T], float]:
    """Yields one part, and more until `pace` (seconds) is over; none where there are none left."""
    start, made = perf_counter(), list[T]()
    for one in work:
        made.append(one)
        if perf_counter() - start >= pace:
            break
    return made, perf_counter() - start


def grown(one: StepStream, came: int, shared: bool) -> Iterator[tuple[int, int]]:
    """Goes on, and yields from which step to which there is a part after those that `came`."""
    for _ in pace_parts(steps(one), shared):
        if one.count > came:
            yield came, one.count
            came = one.count
        if one.is_over:
            return


def steps(one: StepStream) -> Iterator[int]:
    while not one.is_over:
        one.go_on()
        yield one.count


def check_count(came: int, most: int) -> None:
    """Raises ValueError for a count of steps that no browser can have."""
    if not 0 <= came < most:
        raise ValueError(UNKNOWN)


class Live:
    """Store of what waits to go on, by what it writes or finds; those not used longest go."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[Hashable, Any] = OrderedDict()
        self.one_at_a_time = Lock()

    @contextmanager
    def hold(self, key: Hashable, begin: Callable[[], T]) -> Iterator[T]:
        """The one that waits there, or one that begins. It waits all the while, so that nothing is lost where the work
        at it is broken off; one that fails waits no more."""
        with self.one_at_a_time:
            one: T = self.waiting.pop(key) if key in self.waiting else begin()
            self.waiting[key] = one
            while len(self.waiting) > WAITING:
                self.waiting.popitem(last=False)
        try:
            yield one
        except (ValueError, RuntimeError):  # an iterator that raised is at its end
            self.waiting.pop(key, None)
            raise
