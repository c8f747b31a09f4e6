"""Checkpoints and traces shared by everybody who asks for the same one, within a budget of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from threading import Lock

from torch import Tensor

from engine.checkpoints import Checkpoint, load, shipped
from engine.edits import Edit
from engine.limits import MODELS_FOLDER, TRACE_MEMORY
from engine.run import run
from engine.tokenizers.encoding import Encoding
from engine.trace import Trace


def names() -> list[str]:
    """The shipped checkpoints, then the folders a person put into the models folder."""
    folder = Path(MODELS_FOLDER)
    own = sorted(p.name for p in folder.iterdir() if (p / "config.json").is_file()) if folder.is_dir() else []
    return [*shipped(), *(name for name in own if name not in shipped())]


@lru_cache(maxsize=4)
def checkpoint(name: str) -> Checkpoint:
    """One of `names()`, opened once and shared. Raises ValueError for any other, so that a name is never a path."""
    if name not in names():
        raise ValueError(f"there is no model called {name!r}; the models here are {', '.join(names())}.")
    return load(name if name in shipped() else Path(MODELS_FOLDER) / name)


class Traces:
    """Full traces by what they were made from; once they hold more than `budget` bytes, those not used longest go."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._kept: OrderedDict[tuple[object, ...], tuple[Trace, int]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def of(
        self, name: str, read: Encoding | Tensor, edits: Sequence[Edit] = (), target: Encoding | None = None
    ) -> Trace:
        """The trace of a text or picture through a checkpoint of this library, from its plain run where that is kept.

        `target` is what the decoder of an encoder-decoder reads.
        """
        what = (read.numpy().tobytes(), tuple(read.shape)) if isinstance(read, Tensor) else read
        key = (name, what, target, tuple(map(repr, edits)))
        found = self._find(key)
        if found is None:
            base = self._find((name, what, target, ()))
            found = run(checkpoint(name).model, read, edits=edits, base=base, target=target)
            self._keep(key, found)
        return found

    def _find(self, key: tuple[object, ...]) -> Trace | None:
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def _keep(self, key: tuple[object, ...], trace: Trace) -> None:
        size = trace.bytes
        with self._lock:
            if key in self._kept:  # somebody else computed it meanwhile
                return
            self._kept[key] = (trace, size)
            self._bytes += size
            while len(self._kept) > 1 and self._bytes > self.budget:
                self._bytes -= self._kept.popitem(last=False)[1][1]


traces = Traces(TRACE_MEMORY)
