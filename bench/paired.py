"""Two ways to do the same thing, timed in turns, so that whatever else the machine does falls on both alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from statistics import median, quantiles
from time import perf_counter

WARM_UP = 1
LEAST = 4  # rounds, however slow; an even number, so that each goes first as often


@dataclass(frozen=True)
class Row:
    """Median seconds of both sides and the median ratio of their paired repetitions, held against `reach`; half of the
    ratios lie within `spread`."""

    what: str
    ours: float
    theirs: float
    ratio: float
    rounds: int
    reach: float | None = None
    note: str = ""
    spread: tuple[float, float] | None = None

    @property
    def reached(self) -> bool:
        return self.reach is None or self.ratio <= self.reach


def paired(
    what: str,
    ours: Callable[[], object],
    theirs: Callable[[], object],
    reach: float | None = None,
    seconds: float = 2.0,
    note: str = "",
) -> Row:
    """Times both for as many rounds as `seconds` hold; who goes first changes every round."""
    for _ in range(WARM_UP):
        ours()
        theirs()
    times: list[tuple[float, float]] = []
    begun = perf_counter()
    for turn in count():
        first, second = (timed(ours), timed(theirs)) if turn % 2 else reversed((timed(theirs), timed(ours)))
        times.append((first, second))
        if turn + 1 >= LEAST and perf_counter() - begun > seconds:
            break
    mine, other = zip(*times, strict=True)
    low, ratio, high = quantiles((a / b for a, b in times), n=4, method="inclusive")
    return Row(what, median(mine), median(other), ratio, len(times), reach, note, (low, high))


def timed(action: Callable[[], object]) -> float:
    begun = perf_counter()
    action()
    return perf_counter() - begun
