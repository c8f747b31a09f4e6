"""The limit of what is computed for one visitor: how long it may take, and whether anybody still waits for it.

A server sets it around what a visitor asked for; what computes says `check_work` between its parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from engine.plurals import count_words


class WorkLimitError(ValueError):
    """A computation took longer than it may."""


class Work:
    """`check_visitor` raises what ends the work of somebody who has left."""

    def __init__(self, seconds: float, check_visitor: Callable[[], None]) -> None:
        self.seconds, self.check_visitor, self.began = seconds, check_visitor, monotonic()

    def check(self) -> None:
        self.check_visitor()
        if self.seconds and monotonic() - self.began > self.seconds:
            raise WorkLimitError(
                f"This computation must take no more than {count_words(round(self.seconds), 'second')} here and was "
                "stopped; take a shorter text or a smaller model, or ask who runs this server to raise work_seconds."
            )


_work: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def limit_work(seconds: float, check_visitor: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Limits what this thread computes within; 0 seconds are no limit of time."""
    token = _work.set(Work(seconds, check_visitor))
    try:
        yield
    finally:
        _work.reset(token)


@contextmanager
def suspend_limit() -> Iterator[None]:
    """Suspends the limit for what waits, and for what is made for all visitors: its time does not count, and nothing
    ends it."""
    work, began = _work.get(), monotonic()
    if work is None:
        yield
        return
    token = _work.set(None)
    try:
        yield
    finally:
        _work.reset(token)
        work.began += monotonic() - began


def check_work() -> None:
    """Raises WorkLimitError where the time is over, and what ends a script whose visitor has left."""
    work = _work.get()
    if work is not None:
        work.check()
