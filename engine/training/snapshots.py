"""The snapshots of the training runs on this machine."""

from __future__ import annotations

import os
from pathlib import Path

from engine.training.folder import RunFolder

RUNS_FOLDER = os.environ.get("LOUPE_RUNS", "runs")  # run directories in it are offered, step by step


def snapshots(folder: Path | str = RUNS_FOLDER) -> dict[str, list[int]]:
    """The steps of which each run in `folder` kept its weights, by the run's name; a run without any is left out."""
    place = Path(folder)
    if not place.is_dir():
        return {}
    found = {run.name: RunFolder(run).snapshot_steps() for run in sorted(place.iterdir()) if run.is_dir()}
    return {name: steps for name, steps in found.items() if steps}


def snapshot(run: str, step: int, folder: Path | str = RUNS_FOLDER) -> Path:
    """The weights of a run's step. Raises ValueError for any that `snapshots` does not list: a name is never a path."""
    known = snapshots(folder)
    if step not in known.get(run, ()):
        here = ", ".join(known) or "none"
        raise ValueError(f"there is no step {step} of a run called {run[:100]!r}; the runs here are {here}.")
    return RunFolder(Path(folder) / run).snapshot(step)
