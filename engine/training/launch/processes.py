"""Trainings as processes of their own: started here, known by their run directories, and not ended with the server."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from threading import Thread

from engine.budget import budget
from engine.places import COMMAND, ROOT
from engine.training.launch import turn as turn_script
from engine.training.launch.launcher import FolderLauncher
from engine.training.launch.machine import Abilities
from engine.training.launch.queue import Queue, Ticket
from engine.training.launch.warm_trainer import WarmTrainer
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run import control
from engine.training.run.folder import RunFolder
from engine.training.run.status import ACTIVE, BEGINS, Status, as_written, died, watch_status, write_status


class Processes(FolderLauncher):
    """A `Launcher` on this machine. `runs` holds the run directories.

    A run that need not wait for its turn is handed to the process of `warm`, where there is one.
    """

    def __init__(self, runs: Path | str | None = None, warm: WarmTrainer | None = None) -> None:
        super().__init__(runs)
        self.warm = warm or WarmTrainer()
        self._watched: dict[Path, Thread] = {}

    def _abilities(self, recipe: Recipe) -> Abilities:
        return Abilities.of_this_machine()

    def free_places(self) -> int:
        free = max(0, budget.max_trainings - self.queue.training())
        return max(0, budget.max_queued + free - len(self.queue.names()))

    def _settle(self, run: RunFolder) -> None:
        if (watched := self._watched.get(run.path)) is not None:
            watched.join(1)  # it may still have to say how that process ended

    def _launch(self, run: RunFolder) -> None:
        """Within the queue's lock. The process waits until its status is written, so that none is ever lost."""
        before, steps = as_written(run.status), read_recipe(run.recipe).schedule.steps
        environment = {"OMP_WAIT_POLICY": "passive", control.SEEN: str(control.begin_anew(run.path))}
        free = not self.queue.names() and self.queue.training() < budget.max_trainings
        ticket = self.queue.take_ticket(run.path.name, budget.max_trainings)
        waits, ready = os.pipe()
        try:
            with run.said.open("a", encoding="utf-8") as said:
                said.write(f"{BEGINS}{time.strftime('%Y-%m-%d %H:%M:%S')}\n")
                said.flush()
                turn = [str(self.runs), str(run.path), str(ticket.path)]
                inherited = [ticket.descriptor, waits, said.fileno()]
                process = self.warm.hand_over(arguments(run.path), environment, turn, inherited) if free else None
                process = process or subprocess.Popen(
                    waiting_command(self.runs, run.path, ticket, training(run.path), str(waits)), cwd=ROOT,
                    stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                    env=os.environ | environment, pass_fds=(ticket.descriptor, waits),
                )  # fmt: skip
            told = Status("queued", before.step if before is not None else 0, steps, pid=process.pid)
            write_status(run.status, told)
        finally:
            for descriptor in (ticket.descriptor, waits, ready):
                os.close(descriptor)
        self._watched[run.path] = Thread(target=watch, args=(process, run, told), daemon=True)
        self._watched[run.path].start()


def training(folder: Path) -> list[str]:
    """The command that trains what is in `folder`."""
    return [*COMMAND, *arguments(folder)]


def arguments(folder: Path) -> list[str]:
    """Arguments of the engine's command line that train what is in `folder`."""
    options = ["--out", str(folder), "--quiet", "--background", "--seconds", str(budget.max_run_seconds)]
    return ["train", str(folder / "recipe.toml"), *options]


def waiting_command(runs: Path, folder: Path, ticket: Ticket, command: Iterable[str], starter: str = "") -> list[str]:
    """The command that waits with `ticket` and then becomes `command`. -P: its own folder is no place of modules."""
    turn = [sys.executable, "-P", turn_script.__file__, str(ROOT), str(runs), str(folder), str(ticket.path), starter]
    return [*turn, *command]


def watch(process: subprocess.Popen[bytes], run: RunFolder, began: Status) -> None:
    """Wait for the end of a process, and say in its place what it did not say itself."""
    code = process.wait()
    try:
        status = as_written(run.status)
    except (ValueError, OSError):
        return  # taken away, or damaged: nothing that could be set right here
    if status is None or status.state not in ACTIVE or (status.pid, status.started) != (began.pid, began.started):
        return
    told = died(status, run.path)
    write_status(run.status, replace(told, state="failed", cause="") if code > 0 else told)


def wait_in_line(run: RunFolder, recipe: Recipe, command: Iterable[str]) -> None:
    """This process waits for its turn and becomes `command`; it does not return.

    Raises ValueError where another process has `run`, as training does.
    """
    there = watch_status(run.status)
    if there is not None and there.state in ACTIVE:
        raise ValueError(f"{run.path} must be free, got a run that process {there.pid} has; stop that one first.")
    run.adopt(recipe)
    runs = Path(budget.runs_folder).resolve()
    queue = Queue(runs)
    stamp = control.begin_anew(run.path)
    with queue.lock():
        ticket = queue.take_ticket(run.path.name, budget.max_trainings)
    write_status(run.status, Status("queued", there.step if there is not None else 0, recipe.schedule.steps))
    os.set_inheritable(ticket.descriptor, True)
    arguments = waiting_command(runs, run.path.resolve(), ticket, command)
    os.execve(arguments[0], arguments, {**os.environ, "OMP_WAIT_POLICY": "passive", control.SEEN: str(stamp)})
