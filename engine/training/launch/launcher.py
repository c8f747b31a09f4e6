"""What starts trainings, wherever they run, and what is checked before one of them is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from engine.budget import budget
from engine.training.launch.machine import Abilities
from engine.training.launch.queue import Queue
from engine.training.recipe import limit_checks
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import parse_recipe, read_recipe
from engine.training.run import control
from engine.training.run.atomic import explain_closed_folder
from engine.training.run.folder import RunFolder, runs_folder
from engine.training.run.names import existing_run
from engine.training.run.origin import Origin, make
from engine.training.run.status import ACTIVE, read_status, watch_status


class Launcher(Protocol):
    """Place where trainings run. Everything after the start goes through the run directory, wherever that process
    is."""

    def start(self, recipe: Recipe | str, name: str, origin: Origin | None = None) -> Path:
        """The new run's directory. Raises ValueError (RecipeError for a text that is no recipe) where it cannot be."""

    def check(self, recipes: Sequence[Recipe]) -> None:
        """Raises ValueError where one of them cannot start here, or all together find no room."""

    def free_places(self) -> int:
        """Counts the trainings that could be started now, for most of which that is to wait for their turn."""

    def resume(self, name: str) -> Path:
        """Go on with a run: one that is paused, or one whose process has ended. Raises ValueError where it cannot."""


class FolderLauncher(ABC):
    """A `Launcher` of the run directories in `runs`; where their processes are, its heirs say."""

    def __init__(self, runs: Path | str | None = None) -> None:
        self.runs = runs_folder(runs).resolve()
        self.queue = Queue(self.runs)

    @explain_closed_folder()
    def start(self, recipe: Recipe | str, name: str, origin: Origin | None = None) -> Path:
        recipe = parse_recipe(recipe) if isinstance(recipe, str) else recipe
        self.check([recipe])
        with self.queue.lock():
            self._check_queue()
            folder = make(recipe, name, self.runs, origin or Origin())
            self._launch(RunFolder(folder))
        return folder

    @explain_closed_folder()
    def resume(self, name: str) -> Path:
        run = RunFolder(existing_run(name, self.runs))
        recipe = read_recipe(run.recipe)
        status = watch_status(run.status)
        if status is not None and status.state == "paused":
            control.resume(run.path)
            return run.path
        self.check([recipe])
        if status is None or status.state not in ACTIVE:
            self._settle(run)
        with self.queue.lock():
            check_free(run, recipe)
            self._check_queue()
            self._launch(run)
        return run.path

    def check(self, recipes: Sequence[Recipe]) -> None:
        for recipe in recipes:
            limit_checks.check_start(recipe, self._abilities(recipe))
        limit_checks.check_room(recipes, self.runs)

    @abstractmethod
    def _abilities(self, recipe: Recipe) -> Abilities:
        """Capabilities of the computer on which it would train, as far as they are known."""

    @abstractmethod
    def free_places(self) -> int: ...

    def _check_queue(self) -> None:
        """Raises ValueError where too many wait already. Within the queue's lock."""
        if self.free_places() < 1:
            raise ValueError(
                f"at most {budget.max_queued} trainings may wait for their turn, and as many do; cancel one, wait, or "
                "raise LOUPE_MAX_QUEUED where Loupe is started."
            )

    @abstractmethod
    def _launch(self, run: RunFolder) -> None:
        """Starts what trains in a folder and writes that it is queued. Within the queue's lock."""

    @abstractmethod
    def _settle(self, run: RunFolder) -> None:
        """Waits a moment for what may still be said of a run that has ended."""


def check_free(run: RunFolder, recipe: Recipe) -> None:
    """Raises ValueError for a run that trains, or has nothing left to train."""
    status = read_status(run.status)
    if status is not None and status.state in ACTIVE:
        raise ValueError(f"{run.path.name} is {status.state} already; it needs no second start.")
    if status is not None and status.state == "finished" and status.step >= recipe.schedule.steps:
        raise ValueError(f"{run.path.name} is finished; fork it from a step to train on, or reset it.")
