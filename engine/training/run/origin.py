"""A new run directory, and origin.json in it: when it was made, and from which run it was forked."""

from __future__ import annotations

import os
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from shutil import rmtree
from typing import Any

from engine.ages import is_old, note_day
from engine.json_text import parse_json
from engine.model.from_dict import build
from engine.training.launch.process import exists
from engine.training.recipe.recipe import Recipe
from engine.training.run.atomic import read_json, write_json
from engine.training.run.folder import RunFolder
from engine.training.run.names import check_name, unused_name

MADE = ".made-"  # and the process and machine that make it: the beginning of the name of what is no run yet
OLD = 2  # days


@dataclass(frozen=True)
class Origin:
    """`created` is in seconds since 1970. Of a fork, `run` and `step` say of what, `memory` whether with the
    optimiser's. Of a run of a `search`, that is its name. `changes` are what of the recipe is another, as
    "optimiser.lr=0.001"."""

    created: float = field(default_factory=time.time)
    run: str = ""
    step: int = 0
    memory: bool = True
    changes: tuple[str, ...] = ()
    search: str = ""

    @property
    def values(self) -> dict[str, Any]:
        """Changed values by the dotted keys."""
        return {key: parse_json(value) for key, _, value in (one.partition("=") for one in self.changes)}


def read_origin(run: RunFolder) -> Origin:
    """A run that a person started on the command line has no origin.json, but the day of its oldest file.

    Raises ValueError for a damaged one.
    """
    try:
        data = read_json(run.origin)
        if data is not None:
            origin: Origin = build(Origin, data)
            list(origin.values)  # each of which must read
            return origin
    except ValueError as error:
        told = str(error).rstrip(".")
        raise ValueError(f"origin.json is damaged: {told}; delete it, and the run is taken to be no fork.") from None
    files = [path.stat().st_mtime for path in (run.path, *run.path.glob("*"), *run.snapshots.glob("*"))]
    return Origin(created=min(files))


def make(
    recipe: Recipe, name: str, runs: Path, origin: Origin, fill: Callable[[RunFolder], None] | None = None
) -> Path:
    """A run directory of that name, or with a number behind it where another has it; there at once, as a whole.

    `fill` puts in what else it begins with.
    """
    name = check_name(name)
    runs.mkdir(parents=True, exist_ok=True)
    forget_halves(runs)
    partial = RunFolder(runs / f"{MADE}{os.getpid()}-{socket.gethostname()}-{secrets.token_hex(8)}")
    try:
        partial.adopt(recipe)
        write_json(partial.origin, asdict(origin))
        if fill is not None:
            fill(partial)
        while True:
            place = runs / unused_name(name, runs)
            try:
                os.mkdir(place)  # nobody else takes this name from now on
            except FileExistsError:
                continue
            os.replace(partial.path, place)
            return place
    finally:
        rmtree(partial.path, ignore_errors=True)


def forget_halves(runs: Path) -> None:
    """Remove what processes that were killed meanwhile had begun to make: of other machines what is old."""
    noted = note_day(runs)
    for half in runs.glob(f"{MADE}*"):
        maker, _, rest = half.name.removeprefix(MADE).partition("-")
        here = rest.rpartition("-")[0] == socket.gethostname()
        try:
            gone = here and not (maker.isdecimal() and exists(int(maker)))
            left = gone or is_old(half.stat().st_mtime, OLD, noted)
        except FileNotFoundError:  # made, or removed by somebody else
            continue
        if left:
            rmtree(half, ignore_errors=True)
