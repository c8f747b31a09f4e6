"""The steps of the training runs on this machine whose weights were kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from pathlib import Path

from safetensors import SafetensorError

from engine.checkpoints.weights import safetensors_header
from engine.runtime.limits import RUNS_FOLDER
from engine.training.folder import RunFolder, run_folders
from engine.training.latest import Progress, read_progress

STEP = "@"  # between a run's name and the step
LISTED = 8  # names in a sentence
NUMBER = re.compile(r"\d{1,12}", re.ASCII)


def snapshots(folder: Path | str = RUNS_FOLDER) -> dict[str, list[int]]:
    """The steps of which each run in `folder` kept its weights, by the run's name; a run without any is left out."""
    found = {run.name: RunFolder(run).snapshot_steps() for run in run_folders(folder)}
    return {name: steps for name, steps in found.items() if steps}


def snapshot(run: str, step: int, folder: Path | str = RUNS_FOLDER) -> Path:
    """The weights of a run's step. Raises ValueError for any that `snapshots` does not list: a name is never a path."""
    known = snapshots(folder)
    if step not in known.get(run, ()):
        here = ", ".join(known) or "none"
        raise ValueError(f"there is no step {step} of a run called {run[:100]!r}; the runs here are {here}.")
    return RunFolder(Path(folder) / run).snapshot(step)


def weights(named: str, folder: Path | str = RUNS_FOLDER) -> Path | None:
    """The weights file of "NAME@STEP", or of "NAME", the newest that this run has. None where there is none."""
    name, at, step = named.partition(STEP)
    if name not in {run.name for run in run_folders(folder)} or (at and not NUMBER.fullmatch(step)):
        return None
    run = RunFolder(Path(folder) / name)
    kept, reached = run.snapshot_steps(), latest_step(run)
    if at:
        return run.snapshot(int(step)) if int(step) in kept else run.weights if reached == int(step) else None
    if reached is not None and reached >= max(kept, default=0):
        return run.weights
    return run.snapshot(kept[-1]) if kept else None


def absent(named: str, folder: Path | str = RUNS_FOLDER) -> str:
    """Why `weights` finds none for "NAME@STEP" or "NAME", a part of a sentence."""
    name, at, step = named.partition(STEP)
    here = [run.name for run in run_folders(folder)]
    if name not in here:
        others = f"those here are {list_names(here)}" if here else "none is here"
        return f"there is no run called {name[:80]!r}; {others}"
    kept = RunFolder(Path(folder) / name).snapshot_steps()
    if not kept:
        return f"the run {name!r} has kept no weights yet"
    if not NUMBER.fullmatch(step):
        return f"a step of the run {name!r} must be a whole number, got {step[:20]!r}"
    near = [one for one in kept if one < int(step)][-1:] + [one for one in kept if one > int(step)][:1]
    told = " and ".join(f"{one:,}" for one in near)
    return f"the run {name!r} kept no weights of step {int(step):,}; the nearest that it kept are those of {told}"


def list_names(names: Sequence[str]) -> str:
    """Some of them, and how many more there are."""
    more = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {more:,} more" if more > 0 else "")


def latest_step(run: RunFolder) -> int | None:
    """Step of latest/. None where there is none, or it is damaged."""
    made = progress(run)
    return None if made is None else made.step


def progress(run: RunFolder) -> Progress | None:
    """Progress of latest/. None where there is none, or it is damaged."""
    try:
        return read_progress(run.latest)
    except (ValueError, OSError, SafetensorError):
        return None


def count_parameters(run: RunFolder) -> int | None:
    """Counts the parameters of the model, by the header of the newest weights. None where none were kept yet."""
    kept = run.snapshot_steps()
    file = run.snapshot(kept[-1]) if kept else run.weights
    if not file.exists():
        return None
    tensors = {name: entry for name, entry in safetensors_header(file).items() if name != "__metadata__"}
    return sum(prod(entry["shape"]) for entry in tensors.values())


__all__ = ["RUNS_FOLDER", "absent", "count_parameters", "latest_step", "progress", "snapshot", "snapshots", "weights"]
