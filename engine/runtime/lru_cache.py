"""Values kept within a budget of memory, for all sessions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar
from weakref import WeakSet

Value = TypeVar("Value")


class LruCache(Generic[Value]):
    """Values by key; once they have more than `budget` bytes, those not used longest go, but never the newest.

    `budget` may be a function that says it anew each time.
    """

    def __init__(self, budget: int | Callable[[], int]) -> None:
        self._budget = budget
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        _caches.add(self)

    @property
    def bytes(self) -> int:
        """Bytes of all values that are kept."""
        return self._bytes

    @property
    def budget(self) -> int:
        return self._budget if isinstance(self._budget, int) else self._budget()

    def find(self, key: Hashable) -> Value | None:
        with self._lock:
            if key not in self._values:
                return None
            self._values.move_to_end(key)
            return self._values[key][0]

    def keep(self, key: Hashable, value: Value, size: int) -> Value:
        """The value of that key, which is another where somebody else was faster."""
        with self._lock:
            if key in self._values:
                return self._values[key][0]
            self._values[key] = (value, size)
            self._bytes += size
            while len(self._values) > 1 and self._bytes > self.budget:
                self._bytes -= self._values.popitem(last=False)[1][1]
            return value

    def drop(self, key: Hashable) -> None:
        """Keeps it no longer, if it did."""
        with self._lock:
            self._bytes -= self._values.pop(key, (None, 0))[1]

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
            self._bytes = 0


_caches: WeakSet[LruCache[Any]] = WeakSet()


def release_all() -> None:
    """Drops what all caches of this process keep: it is made anew when it is asked for."""
    for cache in list(_caches):
        cache.clear()
