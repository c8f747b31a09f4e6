"""Queue of heavy forward passes: a few at a time in one process, while the others wait and learn their place."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from torch import Tensor, nn

from engine.work_limit import suspend_limit

REPORT_INTERVAL = 1.0  # seconds between two reports to a waiting pass


class PassQueue:
    """Passes of `heavy` multiplications or more, weights times tokens, compute `most` at a time, in the order in which
    they came; 0: all at once.

    A pass that waits calls what `announce` returns every second, with the number of passes before it; what that raises
    ends the waiting. `on_change` is called with the number of waiting passes whenever that changes.
    """

    def __init__(self, most: int = 0, heavy: int = 0) -> None:
        self.most, self.heavy = most, heavy
        self.announce: Callable[[], Callable[[int], Any]] = lambda: lambda before: None
        self.on_change: Callable[[int], Any] = lambda waiting: None
        self._changed = threading.Condition()
        self._waiting: list[object] = []
        self._busy = 0
        self._thread = threading.local()
        self._weights: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()

    @contextmanager
    def enter(self, model: nn.Module, inputs: Sequence[Any]) -> Iterator[None]:
        """Waits for the turn of a pass over the tensors among `inputs`, unless this thread is within one."""
        if (
            not self.most
            or getattr(self._thread, "inside", False)
            or self.count_multiplications(model, inputs) < self.heavy
        ):
            yield
            return
        with suspend_limit():
            self._wait()
        self._thread.inside = True
        try:
            yield
        finally:
            self._thread.inside = False
            with self._changed:
                self._busy -= 1
                self._changed.notify_all()

    def count_multiplications(self, model: nn.Module, inputs: Sequence[Any]) -> int:
        """Weights times tokens; of pixels, batch channel height width, as many tokens as the model reads."""
        if model not in self._weights:
            self._weights[model] = sum(parameter.numel() for parameter in model.parameters())
        given = [one for one in inputs if isinstance(one, Tensor) and not one.is_floating_point()]
        tokens = sum(one.numel() for one in given)
        if not given and (pixels := next((one for one in inputs if isinstance(one, Tensor)), None)) is not None:
            tokens = len(pixels) * int(getattr(getattr(model, "config", None), "context", 1))
        return self._weights[model] * tokens

    def _wait(self) -> None:
        ticket, report = object(), None
        with self._changed:
            self._waiting.append(ticket)
            self.on_change(len(self._waiting))
        try:
            while (before := self._begin(ticket)) is not None:
                report = report or self.announce()
                report(before)
        finally:
            with self._changed:
                self._waiting.remove(ticket)
                self.on_change(len(self._waiting))
                self._changed.notify_all()

    def _begin(self, ticket: object) -> int | None:
        """Number of passes before a ticket, or None once it is its turn."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting[0] is ticket and self._busy < self.most, REPORT_INTERVAL)
            if self._waiting[0] is not ticket or self._busy >= self.most:
                return self._waiting.index(ticket) + self._busy
            self._busy += 1
            return None


pass_queue = PassQueue()
