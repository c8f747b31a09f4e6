"""The families Loupe reads and writes: every file here is one, with its architectures as FAMILIES.

What several could express is written as the one it was read from, else as the first of them; where names do not say
which that is to be, a file's PLACE does.
"""

from __future__ import annotations

from itertools import chain

from engine.checkpoints.family import Family
from engine.collect import collect


def collect_families() -> dict[str, tuple[Family, ...]]:
    families = list(chain.from_iterable(collect(__name__, "FAMILIES", tuple)))
    return {name: tuple(f for f in families if f.name == name) for name in dict.fromkeys(f.name for f in families)}


FAMILIES: dict[str, tuple[Family, ...]] = collect_families()
(NATIVE,) = FAMILIES["loupe"]
