"""The steps of the training runs on this machine whose weights were kept."""

from __future__ import annotations

from math import prod
from pathlib import Path

from safetensors import SafetensorError

from engine.checkpoints.run_steps import run_folders
from engine.checkpoints.weights import safetensors_header
from engine.runtime.limits import RUNS_FOLDER
from engine.training.folder import RunFolder
from engine.training.latest import Progress, read_progress


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
