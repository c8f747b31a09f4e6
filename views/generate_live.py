"""Generators that wait: a text goes on where it stands, and nothing of it is read again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.generate import Step

MOST = 2  # of one visit; each holds a KV cache


class Live:
    """By what they write and how far they are; those not used longest go."""

    def __init__(self) -> None:
        self.waiting: OrderedDict[Hashable, Iterator[Step]] = OrderedDict()

    def take(self, key: Hashable, begin: Callable[[], Iterator[Step]]) -> Iterator[Step]:
        """The one that waits there, which waits no more, or one that begins."""
        return self.waiting.pop(key) if key in self.waiting else begin()

    def leave(self, key: Hashable, generator: Iterator[Step]) -> None:
        self.waiting[key] = generator
        while len(self.waiting) > MOST:
            self.waiting.popitem(last=False)
