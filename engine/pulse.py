"""How long somebody has been silent, where a heartbeat may come of another machine's clock, or this one's may jump.

Standard library only: who waits for a turn to train imports this before PyTorch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Pulse:
    """Observation of a heartbeat by this process; seconds, `since` and `looked` those of `time.monotonic`.

    `since` is when this value was seen first, with the silence `before` that; `looked` when it was asked for last.
    """

    heartbeat: float
    since: float
    before: float
    looked: float

    @property
    def observed_seconds(self) -> float:
        """Seconds for which this process knows that nothing was heard, whatever the clocks say."""
        return self.looked - self.since

    @property
    def silence(self) -> float:
        """Seconds since something was heard, as well as is known."""
        return self.before + self.observed_seconds


_pulses: dict[str, Pulse] = {}


def listen(name: object, heartbeat: float) -> Pulse:
    """Pulse of what `name` stands for, whose last `heartbeat` is in seconds since 1970.

    Only for a value that is seen for the first time the clocks count, one of the future as heard just now; where there
    was an earlier look at another value, the silence is no longer than since then.
    """
    now, known = time.monotonic(), _pulses.get(str(name))
    if known is not None and known.heartbeat == heartbeat:
        found = replace(known, looked=now)
    else:
        told = max(0.0, time.time() - heartbeat)
        found = Pulse(heartbeat, now, told if known is None else min(told, now - known.looked), now)
    _pulses[str(name)] = found
    return found
