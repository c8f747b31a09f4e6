"""The table of runs: one row for each run directory, whatever is in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.runtime.limits import RUNS_FOLDER
from engine.training.folder import RunFolder, run_folders, size
from engine.training.origin import read_origin
from engine.training.queue import Queue
from engine.training.recipe import Recipe
from engine.training.recipe_file import read_recipe
from engine.training.row_of_metrics import last_values
from engine.training.snapshots import parameters
from engine.training.status import ACTIVE, Status, read_status

UNREADABLE = (ValueError, OSError, RecursionError, LookupError, TypeError)


@dataclass(frozen=True)
class Run:
    """`state` is that of the run's status, "new" where it was never started, "damaged" where its status does not read.

    `loss` and `accuracy` are those of the last logged step that has them, `seconds` were spent on updates, `size` is
    in bytes, `created` in seconds since 1970. `position` is the place in the queue, 1 the next. `fork_of` is the run
    and the step that it began from. `fault` has a sentence for each file that is damaged.
    """

    name: str
    path: Path
    state: str = "new"
    step: int = 0
    steps: int = 0
    task: str = ""
    about: str = ""
    loss: float | None = None
    accuracy: float | None = None
    held_out_loss: float | None = None
    held_out_accuracy: float | None = None
    parameters: int | None = None
    seconds: float = 0.0
    size: int = 0
    created: float = 0.0
    position: int | None = None
    fork_of: tuple[str, int] | None = None
    can_resume: bool = False
    cause: str = ""
    error: str = ""
    fault: str = ""


def runs(folder: Path | str = RUNS_FOLDER) -> list[Run]:
    """The newest first. A run whose files have not changed since it was asked for last is not read again."""
    place = Path(folder)
    waiting = {name: index for index, name in enumerate(Queue(place).waiting(), 1)}
    rows = [row(path) for path in run_folders(place)]
    placed = (replace(one, position=waiting.get(one.name)) if one.state == "queued" else one for one in rows)
    for gone in {path for path in _rows if path.parent == place} - {one.path for one in rows}:
        _rows.pop(gone, None)
    return sorted(placed, key=lambda one: (-one.created, one.name))


def row(path: Path) -> Run:
    """Of one run directory; never raises for what is in it."""
    stamp = _stamp(path)
    known, found = _rows.get(path, (None, None))
    if found is None or known != stamp:
        found = read(RunFolder(path))
        _rows[path] = stamp, found
    if found.state not in ACTIVE:
        return found
    try:
        return replace(found, **_of_status(RunFolder(path)))  # its process may have ended without a word
    except UNREADABLE:
        return found


def read(run: RunFolder) -> Run:
    """What its files say."""
    found: dict[str, Any] = {"name": run.path.name, "path": run.path, "size": size(run.path)}
    faults: list[str] = []
    for name, part in PARTS.items():
        try:
            found |= part(run)
        except UNREADABLE as error:
            found |= {"state": "damaged"} if name == "status.json" else {}
            told = " ".join(str(error).split()).replace(f"{run.path}/", "") or type(error).__name__
            faults.append(told[:300] if name in told else f"{name} does not read: {told[:300]}")
    return Run(**found, fault=" ".join(faults))


def _of_recipe(run: RunFolder) -> dict[str, Any]:
    recipe = read_recipe(run.recipe)
    return {"steps": recipe.schedule.steps, "task": task(recipe), "about": recipe.about}


def task(recipe: Recipe) -> str:
    """What is learned, in a word or two: the data, and the rule where it has several."""
    data = getattr(recipe.data, recipe.data.kind)
    return str(getattr(data, "rule", recipe.data.kind)).replace("_", " ")


def _of_status(run: RunFolder) -> dict[str, Any]:
    status: Status | None = read_status(run.status)
    if status is None:
        return {}
    names = ("state", "step", "cause", "error", "can_resume")
    return {name: getattr(status, name) for name in names} | ({"steps": status.steps} if status.steps else {})


def _of_metrics(run: RunFolder) -> dict[str, Any]:
    return last_values(run.metrics)


def _of_weights(run: RunFolder) -> dict[str, Any]:
    return {"parameters": parameters(run)}


def _of_origin(run: RunFolder) -> dict[str, Any]:
    origin = read_origin(run)
    return {"created": origin.created, "fork_of": (origin.run, origin.step) if origin.run else None}


def _stamp(path: Path) -> tuple[Any, ...]:
    """Another one where anything in the folder was written anew; what only grows is in metrics.jsonl."""
    run = RunFolder(path)
    return tuple(_time(one) for one in (path, run.recipe, run.status, run.metrics, run.snapshots, run.latest))


def _time(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


PARTS: dict[str, Callable[[RunFolder], dict[str, Any]]] = {
    "recipe.toml": _of_recipe,
    "status.json": _of_status,
    "metrics.jsonl": _of_metrics,
    "the weights": _of_weights,
    "origin.json": _of_origin,
}
_rows: dict[Path, tuple[tuple[Any, ...], Run]] = {}
