"""Seconds a step of trainings, as they were measured: of one under way, and of those in the folder of the runs."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from engine.budget import budget
from engine.json_text import parse_json
from engine.training.launch.machine import Abilities, Plan, plan
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.folder import RunFolder, list_runs
from engine.training.run.runs import UNREADABLE
from engine.training.run.snapshots import progress
from engine.training.run.status import as_written

RECENT = 100  # lines from which the pace is read
TAIL = 2**17  # bytes of the end of metrics.jsonl that hold them
SETTLED = 5  # steps of a run from which its pace tells of others: the first ones are slower


@dataclass(frozen=True)
class Pace:
    """`seconds` a step of a training of `recipe`, over all its steps, where the machine is used as `plan` says."""

    recipe: Recipe
    plan: Plan
    seconds: float

    def is_of(self, recipe: Recipe) -> bool:
        """Tells whether a step of `recipe` computes the same as one that was measured."""
        return step_work(self.recipe) == step_work(recipe)


def step_work(recipe: Recipe) -> tuple[object, ...]:
    """Parts of a recipe that, beside the machine, decide the time of a step. The number of different tokens follows
    from the data."""
    model = replace(recipe.model, vocab_size=1)
    return model, recipe.data, recipe.batch, recipe.objective.kind, recipe.optimiser.kind, recipe.base


def time_left(metrics: Sequence[dict[str, Any]], steps: int) -> float | None:
    """Seconds of training until step `steps`, at the pace of the last lines; None while there is none."""
    recent = metrics[-RECENT:]
    if len(recent) < 2:
        return None
    made, took = (recent[-1][name] - recent[0][name] for name in ("step", "seconds"))
    return max(steps - recent[-1]["step"], 0) * took / made if made > 0 else None


def measured_paces(folder: Path) -> Iterator[Pace]:
    """Paces of the runs in `folder` that this machine trained, the newest first; a run that cannot be read has none."""
    stamps = {path: modification_time(RunFolder(path).metrics) for path in list_runs(folder)}
    for path in sorted(filter(stamps.__getitem__, stamps), key=stamps.__getitem__, reverse=True):
        try:
            pace = read_pace(path, stamps[path], budget.max_trainings)
        except UNREADABLE:
            continue
        if pace is not None:
            yield pace


def modification_time(file: Path) -> int:
    """Nanoseconds since 1970; 0 where there is no such file."""
    try:
        return file.stat().st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=256)
def read_pace(path: Path, stamp: int, beside: int) -> Pace | None:
    """Pace of one run, None where it is of another machine or too short. Read once as long as `stamp`, the time at
    which its metrics changed last, is the same; `beside` is how many trainings may share the cores."""
    run = RunFolder(path)
    status, recipe, lines = as_written(run.status), read_recipe(run.recipe), last_lines(run.metrics)
    if status is None or status.host != socket.gethostname() or not lines or lines[-1]["step"] < SETTLED:
        return None
    steps = max(recipe.schedule.steps, lines[-1]["step"])
    left, begun = time_left(lines, steps), progress(run)
    if left is None:
        return None
    chosen = plan(recipe.machine, Abilities.of_this_machine(), beside, 0 if begun is None else begun.threads)
    return Pace(recipe, chosen, (lines[-1]["seconds"] + left) / steps)


def last_lines(metrics: Path) -> list[dict[str, Any]]:
    """The last lines of metrics.jsonl, without one that is still being written."""
    before = max(0, metrics.stat().st_size - TAIL)
    with metrics.open("rb") as file:
        file.seek(before)
        lines = file.read().split(b"\n")[:-1]
    return [parse_json(line) for line in lines[1 if before else 0 :][-RECENT:]]
