"""What all sessions share of it: the long text's states, and every figure measured in this process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial, wraps
from threading import RLock
from typing import ParamSpec, TypeVar

from engine.attention_variants.compare import SearchMeasurement, searches
from engine.attention_variants.cost import Cost
from engine.attention_variants.kept_share import KeptPattern, patterns
from engine.attention_variants.material import Material, material
from engine.attention_variants.measure import KINDS, MOST_BYTES, Point, Setup, cost, grown, measure, point
from engine.runtime import library

FIRST = "stories"  # the model that is measured unless another is asked for
LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)

Key = tuple[object, ...]
_points: dict[Key, Point] = {}
_lock = RLock()
P = ParamSpec("P")
R = TypeVar("R")


def one_at_a_time(compute: Callable[P, R]) -> Callable[P, R]:
    """Wraps a function that remembers its results: sessions that ask for the same wait for the first, and no two are
    timed at once."""

    @wraps(compute)
    def locked(*args: P.args, **kwargs: P.kwargs) -> R:
        with _lock:
            return compute(*args, **kwargs)

    return locked


@one_at_a_time
@lru_cache(maxsize=2)
def states(name: str, length: int, begun: str = "") -> Material:
    return material(library.checkpoint(name), length, begun=begun)


def formulas(name: str, setup: Setup) -> dict[str, list[Cost]]:
    """Costs of each kind by its formula at each of LENGTHS, on the heads that are measured."""
    heads, d_head, d_model = states(name, LENGTHS[0]).heads.w_q.shape
    return {kind: [cost(kind, length, heads, d_head, d_model, setup) for length in LENGTHS] for kind in KINDS}


@one_at_a_time
def cached_point(name: str, kind: str, given: Material, setup: Setup) -> Point:
    """Measures as `measure.point`, once for each model, kind, length and what of the set-up concerns the kind."""
    key = (name, kind, len(given.states), *setup.part_for(kind))
    if key not in _points:
        _points[key] = point(kind, given, setup)
    return _points[key]


def known_points(name: str, longest: int, setup: Setup) -> list[Point]:
    """Points that have been measured already, the shorter lengths first."""
    keys = [(name, kind, length, *setup.part_for(kind)) for length in LENGTHS if length <= longest for kind in KINDS]
    return [_points[key] for key in keys if key in _points]


def measure_up_to(name: str, longest: int, setup: Setup) -> Iterator[Point]:
    """The points that are not known yet, as they come, with those that are."""
    lengths = [length for length in LENGTHS if length <= longest]
    return measure(states(name, longest), lengths, setup, measured=partial(cached_point, name))


def expected_seconds(name: str, longest: int, setup: Setup) -> dict[tuple[str, int], float]:
    """Seconds that each point still to be measured will take: the last known of its kind, grown as its formula grows.

    Empty where all are known that fit into memory.
    """
    last = {point.kind: point for point in known_points(name, longest, setup)}
    by_formula = formulas(name, setup)
    return {
        (kind, length): last[kind].seconds * grown(last[kind].cost, formula)
        for kind in last
        for length, formula in zip(LENGTHS, by_formula[kind], strict=True)
        if last[kind].length < length <= longest and formula.bytes <= MOST_BYTES
    }


@one_at_a_time
@lru_cache(maxsize=64)
def compare_searches(name: str, length: int, setup: Setup, begun: str = "") -> list[SearchMeasurement]:
    return searches(states(name, length, begun), setup)


@one_at_a_time
@lru_cache(maxsize=64)
def kept_patterns(
    name: str, positions: int, layer: int, head: int, setup: Setup, begun: str = ""
) -> dict[str, KeptPattern]:
    return patterns(library.checkpoint(name), positions, layer, head, setup, begun)
