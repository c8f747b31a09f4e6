"""Where a curve changes its course: a rise that stays, the end of a plateau, a turn, a spike. Each says how sure it is
by the noise of the curve itself, and says nothing of noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Curve = NDArray[np.float64]

EARLIER, LATER = 5, 4  # points that must stand on either side of a change
SURE = 6.0  # times the noise, for a change to be one
FEW = 30  # points of which the noise may look a third as large as it is: one curve of noise in 300,000 then has a turn
BUCKETS = 60  # that a long curve is cut into
FLAT = 0.2  # of the fall behind a plateau: so much may the curve fall on it, with what noise may hide


@dataclass(frozen=True)
class Change:
    """Change of a curve, which at point `at` (an index) left `before` for `after`; `noise` is one standard deviation of
    it. `after` was measured up to `until`, not included, where that is not the end."""

    at: int
    before: float
    after: float
    noise: float
    until: int | None = None


def noise(values: Curve) -> float:
    """Estimates one standard deviation of what is between neighbours: of independent errors, second differences have
    sqrt(6) of it. Robust: 1.4826 times their median size."""
    if len(values) < 3:
        return 0.0
    return float(1.4826 * np.median(np.abs(np.diff(values, 2))) / math.sqrt(6))


def rise(values: Curve, least: float) -> Change | None:
    """The first point that is `least` above the median of all before it, if what follows stays there: nine tenths of it
    above nine tenths of what came before, and its median further up than `SURE` times the noise."""
    spread = noise(values)
    for at in range(EARLIER, len(values) - LATER + 1):
        earlier, later = values[:at], values[at:]
        base = float(np.median(earlier))
        if values[at] < base + least:
            continue
        after = float(np.median(later))
        stays = np.quantile(later, 0.1) > max(base + least / 2, np.quantile(earlier, 0.9))
        if stays and after - base >= max(least, SURE * spread):
            return Change(at, base, after, spread)
    return None


def plateau_ends(values: Curve, least: float = 0.08) -> list[Change]:
    """Finds where a curve that stood still falls, by the share `least` of what it was at least.

    A window before the point is held against one behind it: on the first, the curve falls by less than FLAT of the
    second's fall even where it fell by two deviations of the noise more than was seen. So the fall is ten of those.
    """
    width = max(EARLIER, len(values) // 12)
    spread, found = noise(values), list[tuple[float, Change]]()
    for at in range(width, len(values) - width + 1):
        before, after = values[at - width : at], values[at : at + width]
        level, low = float(np.median(before)), float(np.median(after[width // 2 :]))
        slid = abs(float(np.median(before[: width // 2]) - np.median(before[-(width // 2) :])))
        fall = level - low
        if fall > least * abs(level) and slid + 2 * spread < FLAT * fall:
            found.append((fall / (slid + spread + 1e-9 * abs(level)), Change(at, level, low, spread, at + width)))
    best: list[Change] = []
    for _, one in sorted(found, key=lambda pair: -pair[0]):
        if all(abs(one.at - other.at) > 2 * width for other in best):
            best.append(one)
    return sorted(best, key=lambda one: one.at)


def turn(values: Curve, least: float = 0.03) -> Change | None:
    """The lowest point, if the curve has risen since by the share `least` of it and `SURE` times the noise, more where
    it has few points, and stays above: of its last third nothing is near the lowest point."""
    if len(values) < EARLIER + LATER:
        return None
    at = int(values.argmin())
    behind = values[at + 1 :]
    if len(behind) < LATER:
        return None
    last = behind[-max(LATER - 1, len(behind) // 3) :]
    low, up, spread = float(values[at]), float(np.median(last)), noise(values)
    stays = last.min() > low + (up - low) / 3
    sure = SURE * spread * (1 + FEW / len(values))
    return Change(at, low, up, spread) if stays and up - low > max(least * abs(low), sure) else None


def spikes(values: Curve, times: float = 5.0, window: int = 30, most: int = 5) -> list[Change]:
    """Points `times` the median of the `window` before them, and far out of the spread of those: ten deviations of
    their logarithms. The highest of those that stand together, and the `most` highest of all."""
    if len(values) <= window:
        return []
    logs = np.log(np.maximum(values, 1e-30))
    before = np.lib.stride_tricks.sliding_window_view(logs[:-1], window)
    middle = np.median(before, axis=-1)
    spread = 1.4826 * np.median(np.abs(before - middle[:, None]), axis=-1)
    found: list[Change] = []
    for row in np.flatnonzero(logs[window:] - middle > np.maximum(math.log(times), 10 * spread)):
        one = Change(int(row) + window, math.exp(middle[row]), float(values[row + window]), float(spread[row]))
        if found and one.at - found[-1].at <= window:
            found[-1] = max(found[-1], one, key=lambda each: each.after)
        else:
            found.append(one)
    highest = sorted(found, key=lambda one: -one.after / one.before)[:most]
    return sorted(highest, key=lambda one: one.at)


def first_lasting(values: Curve, level: float, points: int = 3) -> int | None:
    """The first point from which on `points` in a row, and nine tenths of all that follow, are at `level` or above."""
    above = values >= level
    for at in np.flatnonzero(above):
        if len(values) - at >= points and above[at : at + points].all() and above[at:].mean() >= 0.9:
            return int(at)
    return None


def smooth(values: Curve, points: int = 5) -> Curve:
    """The running median of so many points."""
    half = points // 2
    if not len(values):
        return values
    padded = np.pad(values, half, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * half + 1)
    return np.asarray(np.median(windows, axis=-1), dtype=np.float64)


def bucket_medians(steps: Curve, values: Curve, count: int = BUCKETS) -> tuple[Curve, Curve]:
    """The first step and the median of each of `count` equal stretches of the steps; those without a point are left
    out, and a curve of fewer points stays as it is."""
    if len(steps) <= count:
        return steps, values
    edges = np.linspace(steps[0], steps[-1], count + 1)[1:-1]
    parts = np.split(np.arange(len(steps)), np.searchsorted(steps, edges))
    return (
        np.array([steps[part[0]] for part in parts if len(part)]),
        np.array([float(np.median(values[part])) for part in parts if len(part)]),
    )
