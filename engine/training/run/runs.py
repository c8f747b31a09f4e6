"""The table of runs: one row for each run directory, whatever is in it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine.training.launch.queue import Queue
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run.folder import RunFolder, list_runs, read_line, runs_folder, size
from engine.training.run.origin import Origin, read_origin
from engine.training.run.snapshots import count_parameters
from engine.training.run.status import ACTIVE, RESUMABLE, Status, read_status

TAIL = 2**16  # bytes of the end of metrics.jsonl that are read first
MAX_TAIL = 2**22
NAMES = ("loss", "accuracy", "held_out_loss", "held_out_accuracy")
TITLES = ("name", "state", "step", "loss", "held-out", "parameters", "task", "MiB", "")
RIGHT_ALIGNED = (2, 3, 4, 5, 7)  # columns of numbers
UNREADABLE = (ValueError, OSError, RecursionError, LookupError, TypeError)


@dataclass(frozen=True)
class RunStatus:
    """A run's status as the table shows it; its state is "new" where it was never started."""

    state: str = "new"
    step: int = 0
    cause: str = ""
    error: str = ""
    where: str = ""

    @property
    def can_resume(self) -> bool:
        return self.state in RESUMABLE


@dataclass(frozen=True)
class Measures:
    """The newest of each that was logged; `seconds` were spent on updates."""

    loss: float | None = None
    accuracy: float | None = None
    held_out_loss: float | None = None
    held_out_accuracy: float | None = None
    seconds: float = 0.0

    @property
    def best_accuracy(self) -> float | None:
        """The held-out accuracy, else that of the last batch."""
        return self.accuracy if self.held_out_accuracy is None else self.held_out_accuracy


@dataclass(frozen=True)
class Run:
    """`steps` are those it is to make, `size` is in bytes, `position` is the place in the queue, 1 the next. An
    `origin` that does not read was created in 1970. `fault` has a sentence for each file that is damaged."""

    name: str
    path: Path
    status: RunStatus = RunStatus()
    steps: int = 0
    task: str = ""
    about: str = ""
    measures: Measures = Measures()
    parameters: int | None = None
    size: int = 0
    position: int | None = None
    origin: Origin = Origin(created=0.0)
    fault: str = ""


def runs(folder: Path | str | None = None) -> list[Run]:
    """The newest first. A run whose files have not changed since it was asked for last is not read again."""
    place = runs_folder(folder)
    waiting = {name: index for index, name in enumerate(Queue(place).names(), 1)}
    rows = [row(path) for path in list_runs(place)]
    placed = (replace(one, position=waiting.get(one.name)) if one.status.state == "queued" else one for one in rows)
    for gone in {path for path in _rows if path.parent == place} - {one.path for one in rows}:
        _rows.pop(gone, None)
    return sorted(placed, key=lambda one: (-one.origin.created, one.name))


def row(path: Path) -> Run:
    """Reads one run directory; never raises for what is in it."""
    stamp = _stamp(path)
    known, found = _rows.get(path, (None, None))
    if found is None or known != stamp:
        found = read_run(RunFolder(path))
        _rows[path] = stamp, found
    if found.status.state not in ACTIVE:
        return found
    try:
        return replace(found, **_of_status(RunFolder(path)))  # its process may have ended without a word
    except UNREADABLE:
        return found


def read_run(run: RunFolder) -> Run:
    """Reads the files of a run."""
    found: dict[str, Any] = {"name": run.path.name, "path": run.path, "size": size(run.path)}
    faults: list[str] = []
    for name, part in PARTS.items():
        try:
            found |= part(run)
        except UNREADABLE as error:
            told = " ".join(str(error).split()).replace(f"{run.path}/", "") or type(error).__name__
            faults.append(told[:300] if name in told else f"{name} does not read: {told[:300]}")
    row = Run(**found)
    if row.status.cause == "damaged":
        faults.append(row.status.error)
    return replace(row, fault=" ".join(faults))


def _of_recipe(run: RunFolder) -> dict[str, Any]:
    recipe = read_recipe(run.recipe)
    return {"steps": recipe.schedule.steps, "task": task(recipe), "about": recipe.about}


def task(recipe: Recipe) -> str:
    """Names what is learned, in a word or two: the data, and the rule where it has several."""
    return str(getattr(recipe.data.table, "rule", recipe.data.kind)).replace("_", " ")


def _of_status(run: RunFolder) -> dict[str, Any]:
    status: Status | None = read_status(run.status)
    if status is None:
        return {}
    error = status.error or status.notice
    found = {"status": RunStatus(status.state, status.step, status.cause, error, status.where)}
    return found | ({"steps": status.steps} if status.steps else {})


def _of_metrics(run: RunFolder) -> dict[str, Any]:
    return {"measures": Measures(**last_values(run.metrics))}


def _of_weights(run: RunFolder) -> dict[str, Any]:
    return {"parameters": count_parameters(run)}


def _of_origin(run: RunFolder) -> dict[str, Any]:
    return {"origin": read_origin(run)}


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


def last_values(path: Path) -> dict[str, Any]:
    """The newest of each of `NAMES`, and the `seconds` of the last line; empty where nothing was logged yet.

    A last line that is still being written is left out. Raises ValueError for one that is damaged.
    """
    try:
        whole = path.stat().st_size
    except FileNotFoundError:
        return {}
    length, found = TAIL, dict[str, Any]()
    while True:
        with path.open("rb") as file:
            file.seek(max(0, whole - length))
            lines = file.read(length).split(b"\n")
        found = _newest(lines[0 if length >= whole else 1 : -1], path)
        if length >= min(whole, MAX_TAIL) or ("loss" in found and "held_out_loss" in found):
            return found
        length *= 4


def _newest(lines: list[bytes], path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in reversed(lines):
        values = read_line(line, path.name)
        found.setdefault("seconds", values["seconds"])
        found |= {name: values[name] for name in NAMES if name not in found and values.get(name) is not None}
        if len(found) == len(NAMES) + 1:
            break
    return found


def format_table(table: Sequence[Run]) -> list[str]:
    """Lines of a text table: the titles, then a line for each run."""
    return align_cells([TITLES, *map(cells, table)], RIGHT_ALIGNED)


def align_cells(rows: Sequence[Sequence[str]], right: Collection[int]) -> list[str]:
    """Lines of a text table whose columns `right`, from 0, end below each other."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        placed = [
            cell.rjust(width) if index in right else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(placed).rstrip())
    return lines


def cells(run: Run) -> tuple[str, ...]:
    status, measures = run.status, run.measures
    state = status.state if run.position is None else f"{status.state} ({run.position})"
    loss, held_out = ("" if value is None else f"{value:.3f}" for value in (measures.loss, measures.held_out_loss))
    parameters = "" if run.parameters is None else f"{run.parameters:,}"
    said = run.fault or status.error
    return (
        run.name, state, f"{status.step:,}/{run.steps:,}", loss, held_out, parameters, run.task,
        f"{run.size / 2**20:,.1f}", said,
    )  # fmt: skip
