"""What waits to go on: a text or a search goes on where it stands, and nothing of it is read again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")
MOST = 2  # of one visit; each holds a KV cache


class Live:
    """By what they write or find, and how far they are; those not used longest go."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[Hashable, Any] = OrderedDict()

    def take(self, key: Hashable, begin: Callable[[], T]) -> T:
        """The one that waits there, which waits no more, or one that begins."""
        found: T = self.waiting.pop(key) if key in self.waiting else begin()
        return found

    def leave(self, key: Hashable, one: object) -> None:
        self.waiting[key] = one
        while len(self.waiting) > MOST:
            self.waiting.popitem(last=False)
