"""Work that takes seconds, done part by part, once for all sessions that wait for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from threading import Lock
from typing import Generic, TypeVar

from engine.work_limit import suspend_limit

Value = TypeVar("Value")
PARTS = 8  # between which a page draws


class SharedWork(Generic[Value]):
    """`work` yields results so far, `count` times; `results` is the last of it, `first` before there is any."""

    def __init__(self, work: Iterator[Value], count: int, first: Value) -> None:
        self.work, self.count, self.results, self.done, self.lock = work, count, first, 0, Lock()

    def reach(self, part: int = PARTS) -> Value:
        """Waits until that many parts of the work are done, and returns what they make."""
        with self.lock, suspend_limit():  # which would leave the work cut off for all others
            while self.done < part:
                for results in islice(self.work, -(-self.count // PARTS)):
                    self.results = results
                self.done += 1
            if self.done == PARTS:
                self.work = iter(())  # which holds what it read
        return self.results

    @property
    def steps(self) -> list[Callable[[], Value]]:
        """The parts, each as a call that is over at once if another session did it; none once all are done."""
        return [] if self.done == PARTS else [partial(self.reach, part + 1) for part in range(PARTS)]
