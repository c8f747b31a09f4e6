"""When: the learning rate of each step, and the steps worth a snapshot."""

from __future__ import annotations

import math

from engine.training.recipe.recipe import Schedule


def learning_rate(step: int, schedule: Schedule, peak: float) -> float:
    """The rate of update `step`, from 1 on: warm-up reaches `peak` at step `warmup`, and what falls from there has
    floor x peak at the last."""
    if step <= schedule.warmup:
        return peak * step / schedule.warmup
    done = min((step - schedule.warmup) / max(schedule.steps - schedule.warmup, 1), 1.0)
    left = {"cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done, "constant": 1.0}[schedule.shape]
    return peak * (schedule.floor + (1 - schedule.floor) * left)


def snapshot_steps(steps: int, count: int) -> frozenset[int]:
    """Chooses at most `count` steps from the untrained 0 to the last, log-spaced: models change most at the
    beginning."""
    if steps < count:
        return frozenset(range(steps + 1))
    chosen, parts = {0, steps}, 2
    while True:  # early steps round to the same number, so the spacing is refined until `count` differ
        spaced = {0} | {round(steps ** (i / parts)) for i in range(parts + 1)}
        if len(spaced) > count:
            return frozenset(chosen)
        chosen, parts = spaced, parts + 1
