"""Runs that were deleted, kept for some days: runs/.deleted/NAME~WHEN."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree

from engine.ages import is_old, note_day
from engine.budget import budget
from engine.training.run.atomic import explain_closed_folder
from engine.training.run.folder import RunFolder, runs_folder, size
from engine.training.run.names import check_name, existing_run, unused_name
from engine.training.run.status import ACTIVE, watch_status

WHEN = "%Y%m%dT%H%M%S%f"
DELETED = ".deleted"  # folder among the runs


@dataclass(frozen=True)
class Deleted:
    """`token` is what `undo_delete` takes."""

    token: str
    name: str
    when: datetime


@explain_closed_folder()
def delete(name: str, folder: Path | str | None = None) -> str:
    """Away, but not gone: `undo_delete` takes the token that is returned. Raises ValueError while it trains."""
    place = runs_folder(folder)
    path = existing_run(name, place)
    at_rest(path)
    empty(place)
    token = f"{path.name}~{datetime.fromtimestamp(time.time(), UTC).strftime(WHEN)}"
    (place / DELETED).mkdir(exist_ok=True)
    os.rename(path, place / DELETED / token)
    return token


def list_deleted(folder: Path | str | None = None) -> list[Deleted]:
    """Lists the runs that can still be had back, the last deleted first."""
    place, found = runs_folder(folder) / DELETED, []
    for path in place.iterdir() if place.is_dir() else ():
        name, _, when = path.name.rpartition("~")
        try:
            found.append(Deleted(path.name, name, datetime.strptime(when, WHEN).replace(tzinfo=UTC)))
        except ValueError:  # nothing that was put here by `delete`
            continue
    return sorted(found, key=lambda one: one.when, reverse=True)


def deleted_folder(token: str, folder: Path | str | None = None) -> Path:
    """Folder of a deleted run. Raises ValueError for one that is not kept any more."""
    if not any(one.token == token for one in list_deleted(folder)):
        raise ValueError(
            f"this run cannot be had back: it was deleted more than {budget.deleted_days} days ago, or its room was "
            "needed."
        )
    return runs_folder(folder) / DELETED / token


@explain_closed_folder()
def undo_delete(token: str, folder: Path | str | None = None) -> str:
    """Returns the name that the run has again, with a number behind it where another has taken that meanwhile."""
    place = runs_folder(folder)
    kept = deleted_folder(token, place)
    name = unused_name(token.rpartition("~")[0], place)
    os.rename(kept, place / name)
    return name


def empty(folder: Path | str | None = None, most: int = 0) -> int:
    """Deletes for good what was deleted long ago, then the oldest until `most` bytes are free. Returns the bytes."""
    place, freed = runs_folder(folder), 0
    noted = note_day(place)
    for one in reversed(list_deleted(place)):
        if is_old(one.when.timestamp(), budget.deleted_days, noted) or freed < most:
            path = place / DELETED / one.token
            freed += size(path)
            rmtree(path, ignore_errors=True)
    return freed


@explain_closed_folder()
def rename(name: str, new: str, folder: Path | str | None = None) -> Path:
    """Raises ValueError for what is no name or another's, and while it trains: its process knows it by this name."""
    place = runs_folder(folder)
    path, name = existing_run(name, place), check_name(new)
    at_rest(path)
    others = {run.name.casefold() for run in place.iterdir() if run != path}
    if name.casefold() in others:
        raise ValueError(f"there is a run called {name!r} already; choose another name.")
    os.rename(path, place / name)
    return place / name


def at_rest(path: Path) -> None:
    """Raises ValueError while a process has this run directory. One whose status does not read is nobody's."""
    try:
        status = watch_status(RunFolder(path).status)
    except (ValueError, RecursionError):
        return
    if status is not None and status.state in ACTIVE:
        raise ValueError(f"{path.name} must be at rest for that, and is {status.state}; stop it first.")
