"""What waits to go on: a text or a search goes on where it stands, and nothing of it is read again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeVar

T = TypeVar("T")
MOST = 2  # of one visit; each holds a KV cache


class Live:
    """By what they write or find; those not used longest go."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[Hashable, Any] = OrderedDict()
        self.one_at_a_time = Lock()

    @contextmanager
    def holding(self, key: Hashable, begin: Callable[[], T]) -> Iterator[T]:
        """The one that waits there, or one that begins. It waits all the while, so that nothing is lost where the work
        at it is broken off; one that fails waits no more."""
        with self.one_at_a_time:
            one: T = self.waiting.pop(key) if key in self.waiting else begin()
            self.waiting[key] = one
            while len(self.waiting) > MOST:
                self.waiting.popitem(last=False)
        try:
            yield one
        except (ValueError, RuntimeError):  # an iterator that raised is at its end
            self.waiting.pop(key, None)
            raise
