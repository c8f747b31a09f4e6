"""A search: one recipe with several values of some of its options, trained as a grid of runs and read as one table.

What makes runs a search is in the origin.json of each, so that every one of them is a run as all others are.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.model.from_dict import build
from engine.plurals import count_words
from engine.runtime.limits import RUNS_FOLDER
from engine.training.launch.launcher import Launcher
from engine.training.names import LONGEST, check_name
from engine.training.origin import Origin
from engine.training.recipe import Recipe
from engine.training.recipe_file import read_recipe
from engine.training.runs import Run, align_cells, runs
from engine.training.status import ACTIVE

Changes = Mapping[str, Any]  # values by the recipe's dotted keys
SEED = "seed"


@dataclass(frozen=True)
class Axis:
    """Values of one option by its dotted key, such as "optimiser.lr"."""

    key: str
    values: tuple[Any, ...]


def read_axis(text: str) -> Axis:
    """Reads "optimiser.lr=1e-3, 3e-3". Values are written as in TOML; what is none is text. Raises ValueError for no
    value, and for one that comes twice."""
    key, equals, written = (part.strip() for part in text.partition("="))
    try:
        values = tomllib.loads(f"values = [{written}]")["values"]
    except tomllib.TOMLDecodeError:
        values = [one.strip() for one in written.split(",") if one.strip()]
    if not equals or not key or not values:
        raise ValueError(f"an option and its values must be KEY=VALUE,VALUE, got {text[:100]!r}; correct it.")
    if twice := next((one for at, one in enumerate(values) if one in values[:at]), None):
        raise ValueError(f"{key} must have each value once, got {twice!r} twice; take one out.")
    return Axis(key, tuple(values))


def list_changes(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """All combinations, those of the last axis beside each other. Raises ValueError for an option with two axes."""
    keys = [axis.key for axis in axes]
    if twice := next((key for at, key in enumerate(keys) if key in keys[:at]), None):
        raise ValueError(f"{twice} must be given once, with all of its values; put them together.")
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*(axis.values for axis in axes))]


def change_recipe(recipe: Recipe, changes: Changes) -> Recipe:
    """The recipe with other values, and a context of the model that goes with the batch's.

    Raises ValueError for a key that is no option, and for what no recipe can have.
    """
    if recipe.model.context == recipe.batch.context and "batch.context" in changes:
        changes = {"model.context": changes["batch.context"], **changes}
    table = asdict(recipe)
    for key, value in changes.items():
        *sections, option = key.split(".")
        place: Any = table
        for section in sections:
            place = place.get(section) if isinstance(place, dict) else None
        if not isinstance(place, dict) or option not in place or isinstance(place[option], dict):
            raise ValueError(f"{key[:80]!r} must be an option of the recipe, such as optimiser.lr; correct it.")
        place[option] = value
    changed: Recipe = build(Recipe, table)
    return changed


def start_search(launcher: Launcher, recipe: Recipe, axes: Sequence[Axis], name: str, folder: Path | str) -> list[Path]:
    """Starts the runs of a search, whose directories in `folder` are returned, or goes on with those of one that was
    begun; what is finished stays as it is.

    Raises ValueError, before any of them has begun, where there is no axis, a combination makes no recipe, the search
    of that name is of another recipe, or they are more than may wait for their turn.
    """
    name = check_name(name)
    if not axes:
        raise ValueError("a search needs an option with its values, such as optimiser.lr=1e-3,3e-3; give at least one.")
    grid = [(changes, change_recipe(recipe, changes)) for changes in list_changes(axes)]
    known = {json.dumps(run.changes, sort_keys=True): run for run in runs(folder) if run.search == name}
    found = [known.get(json.dumps(changes, sort_keys=True)) for changes, _ in grid]
    for run, (_, changed) in zip(found, grid, strict=True):
        if run is not None and read_recipe(run.path / "recipe.toml") != changed:
            raise ValueError(f"the search {name!r} must be of this recipe, and {run.name!r} is not; name it anew.")
    waiting = sum(run is None or (run.can_resume and run.state not in ACTIVE) for run in found)
    if waiting > (places := launcher.free_places()):
        raise ValueError(
            f"a search may start {count_words(places, 'training')} now, got {waiting}; give fewer values, wait, or "
            "raise LOUPE_MAX_QUEUED where Loupe is started."
        )
    started = []
    for run, (changes, changed) in zip(found, grid, strict=True):
        if run is None:
            origin = Origin(search=name, changes=tuple(f"{key}={json.dumps(value)}" for key, value in changes.items()))
            started.append(launcher.start(changed, name_run(name, changes), origin))
        else:
            started.append(run.path)
            if run.can_resume and run.state not in ACTIVE:
                launcher.resume(run.name)
    return started


def name_run(search: str, changes: Changes) -> str:
    """The search's name and what is this run's own, as far as it fits into a name."""
    own = " ".join(f"{key.rpartition('.')[2]} {describe_value(value)}" for key, value in changes.items())
    plain = re.sub(r"[^\w .-]+", " ", own).strip(" .-")[: LONGEST // 2].rstrip(" .-")
    return f"{search[: LONGEST - len(plain) - 1].rstrip(' .-')} {plain}".strip()


def list_searches(found: Sequence[Run]) -> list[str]:
    """Names of the searches among runs, in their order."""
    return list(dict.fromkeys(run.search for run in found if run.search))


def rank_runs(found: Sequence[Run], search: str) -> list[Run]:
    """The runs of a search, the lowest held-out loss first, those without one last."""

    def place(run: Run) -> tuple[float, float, str]:
        held_out, loss = (math.inf if value is None else value for value in (run.held_out_loss, run.loss))
        return held_out, loss, run.name

    return sorted((run for run in found if run.search == search), key=place)


def keys_of(rows: Sequence[Run]) -> list[str]:
    """Options that have several values in the runs of a search, by which these are told apart."""
    keys = dict.fromkeys(key for run in rows for key in run.changes)
    return [key for key in keys if len({describe_value(run.changes.get(key)) for run in rows}) > 1] or list(keys)


def describe_value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def format_search(rows: Sequence[Run]) -> list[str]:
    """Lines of a text table of ranked runs: the options that differ, then how each came out."""
    keys = keys_of(rows)
    titles = (*keys, "state", "step", "loss", "held-out", "accuracy", "seconds")
    cells = [titles]
    for run in rows:
        losses = ("" if value is None else f"{value:.4f}" for value in (run.loss, run.held_out_loss))
        accuracy = run.accuracy if run.held_out_accuracy is None else run.held_out_accuracy
        said = (describe_value(run.changes.get(key, "")) for key in keys)
        share = "" if accuracy is None else f"{accuracy:.1%}"
        cells.append((*said, run.state, f"{run.step:,}/{run.steps:,}", *losses, share, f"{run.seconds:,.0f}"))
    return align_cells(cells, range(len(keys) + 1, len(titles)))


def read_search(name: str, folder: Path | str = RUNS_FOLDER) -> list[Run]:
    """Ranked runs of a search. Raises ValueError where there is none of that name."""
    found = runs(folder)
    if rows := rank_runs(found, name):
        return rows
    there = ", ".join(list_searches(found)) or "none"
    raise ValueError(f"there is no search called {name[:100]!r} here; there is {there}.")
