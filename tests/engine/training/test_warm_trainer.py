"""The process that waits for a run with everything imported: hand-over, and the end of either side."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.budget import budget
from engine.checkpoints import load
from engine.cli.waiting import BACKGROUND
from engine.training import Recipe, RunFolder, read_status, stop, train
from engine.training.launch.process import exists
from engine.training.launch.processes import Processes
from engine.training.launch.warm_trainer import SCRIPT, WarmTrainer
from engine.training.recipe.recipe_file import write_recipe
from engine.training.run.status import BEGINS
from tests.engine.training.waiting import command_of, until

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]
LATER = 3600.0  # seconds; no test waits for the next process


@pytest.fixture
def warm() -> Iterator[WarmTrainer]:
    made = WarmTrainer(enabled=True, pause=LATER)
    yield made
    made.close()


def pid_of(warm: WarmTrainer) -> int:
    assert warm.process is not None
    return warm.process.pid


def reaches(folder: Path, *states: str) -> int:
    """Waits for the run to be in one of these states, and returns the process that it says it is."""

    def reached() -> bool:
        status = read_status(folder / "status.json")
        assert status is not None and (status.state in states or status.state not in ("failed", "killed")), status
        return status.state in states

    until(reached, 90)
    status = read_status(folder / "status.json")
    assert status is not None
    return status.pid


def test_a_run_is_handed_over_and_its_weights_are_those_of_any_other_process(
    warm: WarmTrainer, recipe: Recipe, tmp_path: Path
) -> None:
    warm.keep()
    pid = pid_of(warm)
    warm.keep()
    assert pid_of(warm) == pid  # one is enough
    begun = Processes(tmp_path / "runs", warm)
    folder = begun.start(recipe, "handed over")
    assert warm.process is None
    assert reaches(folder, "finished") == pid and os.getsid(pid) == pid
    begun._watched[folder].join(30)
    said = (folder / "log.txt").read_text().splitlines()
    assert said[0].startswith(BEGINS) and said[-1].startswith("Finished: ")
    assert begun.queue.training() == 0 and begun.queue.names() == []
    for _ in train(recipe, tmp_path / "plain"):
        pass
    ours, theirs = load(folder).model.state_dict(), load(tmp_path / "plain").model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_when_it_has_ended_the_run_has_a_process_of_its_own_and_the_next_is_warmed(
    warm: WarmTrainer, recipe: Recipe, tmp_path: Path
) -> None:
    warm.keep()
    dead = pid_of(warm)
    os.kill(dead, signal.SIGKILL)
    warm.pause = 0.1
    begun = Processes(tmp_path / "runs", warm)
    folder = begun.start(recipe, "cold")
    assert reaches(folder, "finished") != dead
    until(lambda: warm.process is not None)
    assert pid_of(warm) != dead
    begun._watched[folder].join(30)


def test_one_that_does_not_answer_is_ended(
    warm: WarmTrainer, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.training.launch.warm_trainer.PATIENCE", 0.2)
    warm.keep()
    stuck = pid_of(warm)
    os.kill(stuck, signal.SIGSTOP)
    begun = Processes(tmp_path / "runs", warm)
    folder = begun.start(recipe, "cold")
    assert not exists(stuck)
    assert reaches(folder, "finished") != stuck
    begun._watched[folder].join(30)


def test_a_run_that_has_to_wait_for_its_turn_waits_in_a_light_process(
    warm: WarmTrainer, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "max_trainings", 1)
    endless = replace(recipe, schedule=replace(recipe.schedule, steps=900_000))
    warm.keep()
    ready = pid_of(warm)
    begun = Processes(tmp_path / "runs", warm)
    with begun.queue.lock():
        other = begun.queue.take_ticket("other", 1)
    queued = begun.start(endless, "queued")
    assert pid_of(warm) == ready
    assert "turn.py" in command_of(reaches(queued, "queued"))
    stop(queued)
    reaches(queued, "stopped")
    os.close(other.descriptor)
    second = begun.start(endless, "second")
    assert reaches(second, "running") == ready
    stop(second)
    reaches(second, "stopped")
    for watched in begun._watched.values():
        watched.join(30)


def test_it_ends_with_the_server_and_a_run_that_it_was_handed_does_not(recipe: Recipe, tmp_path: Path) -> None:
    """The server is a process that is killed."""
    long = replace(recipe, schedule=replace(recipe.schedule, steps=900_000))
    server = "\n".join(
        [
            "import os, signal, sys, time",
            "from engine.training.launch.processes import Processes",
            "from engine.training.launch.warm_trainer import WarmTrainer",
            "warm = WarmTrainer(enabled=True, pause=0)",
            "warm.keep(); handed = warm.process.pid",
            f"Processes({str(tmp_path)!r}, warm).start(sys.stdin.read(), 'run')",
            "while warm.process is None: time.sleep(0.01)",
            "print(handed, warm.process.pid, flush=True)",
            "os.kill(os.getpid(), signal.SIGKILL)",
        ]
    )
    ended = subprocess.run(
        [sys.executable, "-c", server], cwd=ROOT, input=write_recipe(long), stdout=subprocess.PIPE, text=True
    )
    assert ended.returncode == -signal.SIGKILL
    handed, idle = map(int, ended.stdout.split())
    folder = tmp_path / "run"
    try:
        until(lambda: not exists(idle) or Path(f"/proc/{idle}/stat").read_text().split()[2] == "Z")
        assert reaches(folder, "running") == handed
        steps = len(RunFolder(folder).read_metrics())
        until(lambda: len(RunFolder(folder).read_metrics()) > steps)
    finally:
        stop(folder)
        reaches(folder, "stopped")


def test_none_is_started_before_it_is_enabled_nor_after_it_is_closed() -> None:
    made = WarmTrainer()
    made.keep()
    assert made.process is None
    made.enabled = True
    made.keep()
    pid = pid_of(made)
    made.close()
    assert not exists(pid)
    made.keep()
    assert made.process is None


def test_what_the_first_update_needs_is_imported_at_a_low_priority_before_a_run_comes(tmp_path: Path) -> None:
    """Nothing of PyTorch, of the compiler or of the engine is left to be imported between Play and the first point."""
    code = f"""
import sys, threading
from engine.cli import waiting
from engine.training import read_recipe, train
imports = threading.Thread(target=waiting.import_trainer)
imports.start()
imports.join()
before = set(sys.modules)
for step in train(read_recipe({str(ROOT / "assets" / "lab" / "induction.toml")!r}), {str(tmp_path / "run")!r}):
    if step.step:
        break
print(sorted(name for name in set(sys.modules) - before if name.split(".")[0] in ("engine", "torch", "sympy")))
"""
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert said == "[]\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only there a thread has a priority of its own")
def test_its_imports_give_way_and_what_it_trains_does_not() -> None:
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        command = [sys.executable, "-P", str(SCRIPT), str(ROOT), str(theirs.fileno())]
        process = subprocess.Popen(command, pass_fds=(theirs.fileno(),))
        tasks = Path(f"/proc/{process.pid}/task")
        until(lambda: len(list(tasks.iterdir())) > 1)
        expected = {usual, min(usual + BACKGROUND, 19)}
        until(lambda: {os.getpriority(os.PRIO_PROCESS, int(task.name)) for task in tasks.iterdir()} == expected)
        assert os.getpriority(os.PRIO_PROCESS, process.pid) == usual
    assert process.wait(30) == 0
