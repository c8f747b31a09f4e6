"""Something done again and again in a thread while a block of code runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread


@contextmanager
def repeat(act: Callable[[], object], seconds: float) -> Iterator[None]:
    """Calls `act` with so many seconds between two calls, the first of them after that; it has ended with the block."""
    ended = Event()

    def go_on() -> None:
        while not ended.wait(seconds):
            act()

    thread = Thread(target=go_on, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
