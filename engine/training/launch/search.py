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

from engine.characters import keep_words
from engine.data.kinds.preferences import Preferences
from engine.data.kinds.text import Text
from engine.data.own import Columns
from engine.json_text import parse_json
from engine.plurals import count_words
from engine.training.base.new_head import model_of_base
from engine.training.launch.launcher import Launcher
from engine.training.policy.pairs import read_pairs
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import as_tables, build_recipe, place_files, read_recipe
from engine.training.run.names import LONGEST, check_name, cut_name
from engine.training.run.origin import Origin
from engine.training.run.runs import Run, align_cells, runs

Changes = Mapping[str, Any]  # values by the recipe's dotted keys
SEED = "seed"
OF_A_BASE = frozenset({"base", "objective.kind", "objective.language_weight"})  # what a [model] is completed by
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NUMBERED = 5  # letters of a name that are left to a number behind it


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
        values = [read_value(one) for one in split_values(written)]
    if not equals or not key or not values:
        raise ValueError(f"an option and its values must be KEY=VALUE,VALUE, got {text[:100]!r}; correct it.")
    if twice := next((one for at, one in enumerate(values) if one in values[:at]), None):
        raise ValueError(f"{key} must have each value once, got {twice!r} twice; take one out.")
    return Axis(key, tuple(values))


def split_values(written: str) -> list[str]:
    """Splits at commas, those within brackets or quotation marks excepted."""
    found, depth, mark = [""], 0, ""
    for sign in written:
        if mark or sign in "\"'":
            mark = "" if sign == mark else mark or sign
        else:
            depth += (sign in "[{") - (sign in "]}")
        if sign == "," and not depth and not mark:
            found.append("")
        else:
            found[-1] += sign
    parts = written.split(",") if depth or mark else found  # an apostrophe, and no quotation mark
    return [part.strip() for part in parts if part.strip()]


def read_value(written: str) -> Any:
    try:
        return tomllib.loads(f"value = {written}")["value"]
    except tomllib.TOMLDecodeError:
        return float(written) if NUMBER.fullmatch(written) else written


def list_changes(axes: Sequence[Axis]) -> list[dict[str, Any]]:
    """All combinations, those of the last axis beside each other. Raises ValueError for an option with two axes."""
    keys = [axis.key for axis in axes]
    if twice := next((key for at, key in enumerate(keys) if key in keys[:at]), None):
        raise ValueError(f"{twice} must be given once, with all of its values; put them together.")
    return [dict(zip(keys, values, strict=True)) for values in itertools.product(*(axis.values for axis in axes))]


def change_recipe(recipe: Recipe, changes: Changes, beside: Path | None = None) -> Recipe:
    """The recipe with other values, and with what follows from them: the context of a model that is the batch's, of
    another `base` or objective all of [model] that the recipe does not say otherwise, and of another seed the `split`
    of this one, so that all are measured on the same rows.

    A file or a base that is a path is taken from the folder `beside`; without one a base must be known by its name, as
    for `parse_recipe`. Raises ValueError for a key that is no option, and for what no recipe can have.
    """
    if recipe.model.context == recipe.batch.context and not recipe.base and "batch.context" in changes:
        changes = {"model.context": changes["batch.context"], **changes}
    if SEED in changes and recipe.split is None:
        changes = {"split": recipe.seed, **changes}
    table = recipe.tables
    for key in changes:
        find_options(table, key)
    if recipe.base and not OF_A_BASE.isdisjoint(changes):
        usual = asdict(model_of_base(recipe.base, recipe.objective.kind, recipe.data.kind, keeps_language(recipe)))
        table["model"] = {key: value for key, value in table["model"].items() if value != usual[key]}
    for key, value in changes.items():
        options, option = find_options(table, key, made=True)
        options[option] = value
    changed = build_recipe(as_tables(table), beside if "base" in changes else Path("/"))
    return changed if beside is None else place_files(changed, beside)


def find_options(table: dict[str, Any], key: str, made: bool = False) -> tuple[dict[str, Any], str]:
    """The table in which the option of that dotted key is, and what it is called there. Raises ValueError where there
    is none, unless the tables on the way are `made`."""
    *sections, option = key.split(".")
    place: Any = table
    for section in sections:
        if made:
            place.setdefault(section, {})
        place = place.get(section) if isinstance(place, dict) else None
    if not made and (not isinstance(place, dict) or option not in place or isinstance(place[option], dict)):
        raise ValueError(f"{key[:80]!r} must be an option of the recipe, such as optimiser.lr; correct it.")
    return place, option


def keeps_language(recipe: Recipe) -> bool:
    return bool(recipe.objective.language_weight)


def start_search(
    launcher: Launcher, recipe: Recipe, axes: Sequence[Axis], name: str, folder: Path | str, beside: Path | None = None
) -> list[Path]:
    """Starts the runs of a search, whose directories in `folder` are returned, or goes on with those of one that was
    begun; what is finished stays as it is. `beside` is the folder in which the recipe stands.

    Raises ValueError, before any of them has begun, where there is no axis, a combination makes no recipe, that of
    another or none that can start, the search of that name is of another recipe, or they are more than may wait for
    their turn.
    """
    name = check_name(name)
    if not axes:
        raise ValueError("a search needs an option with its values, such as optimiser.lr=1e-3,3e-3; give at least one.")
    grid = [(changes, change_recipe(recipe, changes, beside)) for changes in list_changes(axes)]
    check_different(grid)
    known = [run for run in runs(folder) if run.origin.search == name]
    found = [next((run for run in known if run.origin.values == as_written(changes)), None) for changes, _ in grid]
    for run, (_, changed) in zip(found, grid, strict=True):
        if run is not None and read_recipe(run.path / "recipe.toml") != changed:
            raise ValueError(f"the search {name!r} must be of this recipe, and {run.name!r} is not; name it anew.")
    left = [changed for run, (_, changed) in zip(found, grid, strict=True) if run is None or is_left(run)]
    waiting = len(left)
    if waiting > (places := launcher.free_places()):
        raise ValueError(
            f"a search may start {count_words(places, 'training')} now, got {waiting}; give fewer values, wait, or "
            "raise LOUPE_MAX_QUEUED where Loupe is started."
        )
    check_data(left)
    launcher.check(left)
    started = []
    for run, (changes, changed) in zip(found, grid, strict=True):
        if run is None:
            origin = Origin(search=name, changes=tuple(f"{key}={json.dumps(value)}" for key, value in changes.items()))
            started.append(launcher.start(changed, name_run(name, changes), origin))
        else:
            started.append(run.path)
            if is_left(run):
                launcher.resume(run.name)
    return started


def as_written(changes: Changes) -> Any:
    """Changes in the form that `Origin` keeps."""
    return parse_json(json.dumps(changes))


def is_left(run: Run) -> bool:
    """Tells whether a run is still to be trained and nobody is at it: its process has ended, or never began."""
    return run.status.state == "new" or run.status.can_resume


def check_different(grid: Sequence[tuple[Changes, Recipe]]) -> None:
    """Raises ValueError where two combinations are one recipe, as where a path is written in two ways."""
    for at, (changes, recipe) in enumerate(grid):
        if twice := next((other for other, same in grid[:at] if same == recipe), None):
            one, two = (" ".join(describe_parts(each)) for each in (twice, changes))
            raise ValueError(f"each combination must be another recipe, and {one} and {two} are one; take one out.")


def check_data(recipes: Sequence[Recipe]) -> None:
    """Raises ValueError where one of several files or columns of data cannot be learned from."""
    different = [one for at, one in enumerate(recipes) if one.data not in [before.data for before in recipes[:at]]]
    for recipe in different if len(different) > 1 else ():
        table = recipe.data.table
        if isinstance(table, Columns):
            told = table.table()
            for column in table.names:
                told.cells(getattr(table, column))
        elif isinstance(table, Text):
            table.make_documents(recipe.data_seed)
        elif isinstance(table, Preferences):
            for path in filter(None, (table.path, table.held_out_path)):
                read_pairs(path)


def name_run(search: str, changes: Changes) -> str:
    """The search's name and what is this run's own, each part as a whole, or left out where there is no room for it."""
    own = ""
    for part in describe_parts(changes):
        plain = keep_words(part, " .-", " ").strip(" .-")
        longer = f"{own} {plain}".strip()
        own = longer if len(longer) <= LONGEST // 2 else own
    return f"{cut_name(search, LONGEST - NUMBERED - len(own) - 1)} {own}".strip()


def describe_parts(changes: Changes) -> list[str]:
    """Each option with its value, by the end of its key that no other one has."""
    found = []
    for key, value in changes.items():
        others = [one for one in changes if one != key]
        ends = (".".join(key.split(".")[-count:]) for count in range(1, key.count(".") + 2))
        short = next((end for end in ends if not any(f".{one}".endswith(f".{end}") for one in others)), key)
        found.append(f"{short} {describe_value(value)}")
    return found


def list_searches(found: Sequence[Run]) -> list[str]:
    """Names of the searches among runs, in their order."""
    return list(dict.fromkeys(run.origin.search for run in found if run.origin.search))


def rank_runs(found: Sequence[Run], search: str) -> list[Run]:
    """The runs of a search, the lowest held-out loss first, those without one last."""

    def place(run: Run) -> tuple[float, float, str]:
        losses = run.measures.held_out_loss, run.measures.loss
        held_out, loss = (math.inf if value is None else value for value in losses)
        return held_out, loss, run.name

    return sorted((run for run in found if run.origin.search == search), key=place)


def keys_of(rows: Sequence[Run]) -> list[str]:
    """Options that have several values in the runs of a search, by which these are told apart."""
    changes = [run.origin.values for run in rows]
    keys = dict.fromkeys(key for values in changes for key in values)
    return [key for key in keys if any(values.get(key) != changes[0].get(key) for values in changes)] or list(keys)


def describe_value(value: Any) -> str:
    """A number in as many digits as it needs to be told from all others."""
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return (short if float(short) == value else repr(value)).replace("e+", "e")


def format_search(rows: Sequence[Run]) -> list[str]:
    """Lines of a text table of ranked runs: the options that differ, then how each came out."""
    keys = keys_of(rows)
    titles = (*keys, "state", "step", "loss", "held-out", "accuracy", "seconds")
    cells = [titles]
    for run in rows:
        status, measures, changes = run.status, run.measures, run.origin.values
        losses = ("" if value is None else f"{value:.4f}" for value in (measures.loss, measures.held_out_loss))
        said = (describe_value(changes.get(key, "")) for key in keys)
        share = "" if measures.best_accuracy is None else f"{measures.best_accuracy:.1%}"
        cells.append(
            (*said, status.state, f"{status.step:,}/{run.steps:,}", *losses, share, f"{measures.seconds:,.0f}")
        )
    return align_cells(cells, range(len(keys) + 1, len(titles)))


def read_search(name: str, folder: Path | str | None = None) -> list[Run]:
    """Ranked runs of a search. Raises ValueError where there is none of that name."""
    found = runs(folder)
    if rows := rank_runs(found, name):
        return rows
    there = ", ".join(list_searches(found)) or "none"
    raise ValueError(f"there is no search called {name[:100]!r} here; there is {there}.")
