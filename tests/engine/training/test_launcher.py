"""Trainings started as processes: what is in their folders at once, limits, ends of every kind."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from engine.budget import budget
from engine.checkpoints import load
from engine.training import Recipe, RunFolder, read_recipe, read_status, stop, train
from engine.training.launch import processes
from engine.training.launch.processes import Processes
from engine.training.recipe.recipe_file import RecipeError, write_recipe
from engine.training.run.control import n_steps, read_order
from engine.training.run.runs import runs
from engine.training.run.status import Status
from tests.engine.training.waiting import SLEEP, command_of, until

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Processes]:
    """A launcher whose processes are ended with the test."""
    made = Processes(tmp_path / "runs")
    yield made
    for path in (tmp_path / "runs").glob("*/status.json"):
        status = read_status(path)
        if status is not None and status.state in ("queued", "preparing", "running", "paused"):
            os.kill(status.pid, signal.SIGKILL)
    for watched in made._watched.values():
        watched.join(10)


@pytest.fixture
def asleep(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of a training a process that sleeps."""
    monkeypatch.setattr(processes, "training", lambda folder: SLEEP)


def status_of(folder: Path) -> Status:
    status = read_status(folder / "status.json")
    assert status is not None
    return status


def reaches(folder: Path, state: str, step: int | None = None) -> Status:
    """Waits for it, and does not where the run has ended otherwise."""
    ended = ("failed", "killed", "stopped", "finished")

    def there() -> bool:
        now = status_of(folder)
        assert now.state == state or now.state not in ended, f"{now.state}: {now.error}"
        return now.state == state and step in (None, now.step)

    until(there, 90)
    return status_of(folder)


def test_a_run_trains_in_a_process_of_its_own_and_finishes(begun: Processes, recipe: Recipe, tmp_path: Path) -> None:
    folder = begun.start(recipe, "first try")
    assert folder == begun.runs / "first try"
    assert status_of(folder).state in ("queued", "preparing")
    pid = status_of(folder).pid
    assert os.getsid(pid) == pid != os.getsid(0)  # a session of its own: the server's end is not its
    reaches(folder, "finished")
    assert status_of(folder).pid == pid
    until(lambda: (folder / "log.txt").read_text().splitlines()[-1].startswith("Finished: "))
    plain = RunFolder(tmp_path / "plain")
    for _ in train(recipe, plain.path):
        pass
    ours, theirs = load(folder).model.state_dict(), load(plain.path).model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_killed_while_it_trains_it_says_so_and_resumes_to_the_same_weights(
    begun: Processes, recipe: Recipe, tmp_path: Path
) -> None:
    longer = replace(recipe, schedule=replace(recipe.schedule, steps=4000), log=replace(recipe.log, held_out_every=500))
    folder = begun.start(longer, "killed")
    run = RunFolder(folder)
    until(lambda: len(run.read_metrics()) > 20, 60)
    os.kill(status_of(folder).pid, signal.SIGKILL)
    reaches(folder, "killed")
    until(lambda: json.loads(run.status.read_text())["state"] == "killed")  # for good, not only as it is read now
    assert status_of(folder).can_resume and status_of(folder).cause == "killed"
    begun.resume("killed")
    n_steps(folder, 5)
    reaches(folder, "paused")
    at = status_of(folder).step
    plain = RunFolder(tmp_path / "plain")
    for step in train(longer, plain.path):
        if step.step == at:
            break
    ours, theirs = load(folder).model.state_dict(), load(plain.path).model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    stop(folder)
    reaches(folder, "stopped")


def test_two_paused_trainings_keep_nobody_waiting_and_go_on_in_turn(
    begun: Processes, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "max_trainings", 2)
    endless = replace(recipe, schedule=replace(recipe.schedule, steps=100_000))
    paused = [begun.start(endless, name) for name in ("one", "two")]
    for folder in paused:
        n_steps(folder, 3)
        reaches(folder, "paused")
    reaches(begun.start(recipe, "third"), "finished")
    until(lambda: sum(status_of(folder).state == "stopped" for folder in paused) == 1)  # as many as waited
    given = next(folder for folder in paused if status_of(folder).state == "stopped")
    assert status_of(given).cause == "gave way" and "resume it" in status_of(given).error
    begun.resume(given.name)
    reaches(given, "running")


def test_the_folder_is_whole_and_says_queued_before_start_returns(
    begun: Processes, recipe: Recipe, asleep: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "max_trainings", 1)
    one, two, three = (begun.start(recipe, name) for name in ("a run", "a run", "A Run"))
    assert [folder.name for folder in (one, two, three)] == ["a run", "a run 2", "A Run 3"]
    assert read_recipe(two / "recipe.toml") == recipe
    status = status_of(three)
    assert (status.state, status.step, status.steps) == ("queued", 0, 12)
    assert "turn.py" in command_of(status.pid)
    reaches(one, "preparing")
    assert {run.name: (run.status.state, run.position) for run in runs(begun.runs)} == {
        "a run": ("preparing", None),
        "a run 2": ("queued", 1),
        "A Run 3": ("queued", 2),
    }
    os.kill(status_of(two).pid, signal.SIGKILL)
    reaches(two, "killed")
    assert "while it waited for its turn" in status_of(two).error
    assert begun.queue.position("A Run 3") == 1
    os.kill(status_of(one).pid, signal.SIGKILL)
    reaches(three, "preparing")


def test_trainings_outlive_the_server_and_its_queue_goes_on(recipe: Recipe, tmp_path: Path) -> None:
    """The server is a process that starts three and is killed at once."""
    text = write_recipe(recipe)
    server = "\n".join(
        [
            "import os, signal, sys",
            "from engine.training.launch import processes",
            f"processes.training = lambda folder: {SLEEP!r}",
            "processes.budget.max_trainings = 1",
            f"begun = processes.Processes({str(tmp_path)!r})",
            "text = sys.stdin.read()",
            "for _ in range(3): begun.start(text, 'run')",
            "os.kill(os.getpid(), signal.SIGKILL)",
        ]
    )
    ended = subprocess.run([sys.executable, "-c", server], cwd=ROOT, input=text.encode())
    assert ended.returncode == -signal.SIGKILL
    begun = Processes(tmp_path)
    folders = [tmp_path / name for name in ("run", "run 2", "run 3")]
    try:
        reaches(folders[0], "preparing")
        until(lambda: begun.queue.names() == ["run 2", "run 3"])
        os.kill(status_of(folders[0]).pid, signal.SIGKILL)
        reaches(folders[1], "preparing")
        until(lambda: begun.queue.names() == ["run 3"])
        assert status_of(folders[0]).state == "killed"
    finally:
        for folder in reversed(folders):
            if status_of(folder).state in ("queued", "preparing"):
                os.kill(status_of(folder).pid, signal.SIGKILL)


def test_cancelled_while_queued_it_stops_and_can_be_started_again(
    begun: Processes, recipe: Recipe, asleep: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "max_trainings", 1)
    begun.start(recipe, "first")
    second = begun.start(recipe, "second")
    stop(second)
    reaches(second, "stopped")
    until(lambda: begun.queue.names() == [])
    begun.resume("second")
    assert status_of(second).state == "queued" and begun.queue.names() == ["second"]
    assert read_order(second / "control.json").mode == "run"


def test_an_order_given_while_it_waits_or_loads_is_kept(begun: Processes, recipe: Recipe) -> None:
    folder = begun.start(recipe, "held")
    n_steps(folder, 3)  # long before the training reads it
    reaches(folder, "paused", 3)
    begun.resume("held")
    reaches(folder, "finished")


def test_what_cannot_be_resumed_is_said(begun: Processes, recipe: Recipe, asleep: None) -> None:
    begun.start(recipe, "busy")
    with pytest.raises(ValueError, match="busy is (queued|preparing) already; it needs no second start"):
        begun.resume("busy")
    with pytest.raises(ValueError, match="there is no run called 'none' here"):
        begun.resume("none")
    for _ in train(recipe, begun.runs / "done"):
        pass
    with pytest.raises(ValueError, match="done is finished; fork it"):
        begun.resume("done")


NO_NAMES = ["", "..", "../x", "a/b", "a\0b", ".hidden", "x" * 61, "a\nb", "C:", "run.", "a~1", "-x"]


@pytest.mark.parametrize("name", NO_NAMES)
def test_a_name_is_never_a_path(begun: Processes, recipe: Recipe, name: str, asleep: None) -> None:
    long = len(name) > 60
    said = "a run's name must have at most 60 characters" if long else "a run's name must be 1 to 60 letters"
    with pytest.raises(ValueError, match=said):
        begun.start(recipe, name)
    assert not begun.runs.exists() or not [path for path in begun.runs.iterdir() if path.name != ".queue"]


def test_letters_of_every_script_make_a_name(begun: Processes, recipe: Recipe, asleep: None) -> None:
    assert begun.start(recipe, "Größe 2_b.v1-x").is_dir()
    assert begun.start(recipe, "学習").is_dir()


def test_a_text_that_is_no_recipe_starts_nothing(begun: Processes) -> None:
    with pytest.raises(RecipeError, match="line 1"):
        begun.start("[model]\nlayers = 1\n[data]\n[schedule]\nsteps = 1\n[batch]\nsize = 1\ncontext = 4\n", "x")
    assert not begun.runs.exists()


@pytest.mark.parametrize(
    ("limit", "value", "told"),
    [
        ("MAX_STEPS", 11, "schedule.steps must be at most 11 here, got 12; lower it, or raise LOUPE_MAX_STEPS"),
        ("MAX_LAYERS", 0, "model.layers must be at most 0 here, got 1"),
        ("MAX_PARAMETERS", 1000, "the model's parameters must be at most 1,000 here, got 2,"),
        ("RUNS_DISK", 2**16, "a run may take 0 MiB, and this one's snapshots need .* LOUPE_RUNS_DISK_MIB"),
    ],
)
def test_a_limit_is_said_with_its_value_and_how_to_raise_it(
    begun: Processes, recipe: Recipe, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, told: str
) -> None:
    monkeypatch.setattr(budget, limit.lower(), value)
    with pytest.raises(ValueError, match=told):
        begun.start(recipe, "too much")
    assert not (begun.runs / "too much").exists()


def test_more_than_may_wait_are_refused(
    begun: Processes, recipe: Recipe, asleep: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "max_trainings", 1)
    monkeypatch.setattr(budget, "max_queued", 1)
    first = begun.start(recipe, "one")
    reaches(first, "preparing")
    begun.start(recipe, "two")
    with pytest.raises(ValueError, match="at most 1 trainings may wait .* raise LOUPE_MAX_QUEUED"):
        begun.start(recipe, "three")
    assert not (begun.runs / "three").exists()


def test_a_process_that_fails_before_it_can_say_so_leaves_its_last_line(
    begun: Processes, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [sys.executable, "-S", "-c", "raise SystemExit('loupe: there is no module named torch')"]
    monkeypatch.setattr(processes, "training", lambda folder: broken)
    folder = begun.start(recipe, "broken")
    until(lambda: json.loads((folder / "status.json").read_text())["state"] == "failed")
    assert "said last: loupe: there is no module named torch" in status_of(folder).error


def test_a_training_that_fails_says_why_and_its_process_does_not_linger(begun: Processes, recipe: Recipe) -> None:
    mad = replace(recipe, optimiser=replace(recipe.optimiser, lr=1e30, clip=0.0))
    folder = begun.start(mad, "mad")
    reaches(folder, "failed")
    assert "lower optimiser.lr" in status_of(folder).error
    pid = status_of(folder).pid
    until(lambda: not Path(f"/proc/{pid}").exists())  # nobody left it as a zombie


def test_a_run_stops_after_the_seconds_it_may_take_and_says_so(
    begun: Processes, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "max_run_seconds", 1)
    endless = replace(recipe, schedule=replace(recipe.schedule, steps=900_000))
    folder = begun.start(endless, "endless")
    reaches(folder, "stopped")
    until(lambda: status_of(folder).cause == "time limit")
    assert "as long as is allowed at a time; resume it" in status_of(folder).error
