"""Trainings from the command line: the table, the queue, forks."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.budget import budget
from engine.cli.main import change, main
from engine.training import Recipe, RunFolder, read_recipe, read_status, train
from engine.training.launch.queue import Queue
from tests.engine.training.waiting import command_of, until, wait_in

ROOT = Path(__file__).parents[3]


def test_the_table_of_runs_is_printed(recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in train(recipe, tmp_path / "runs" / "mine"):
        pass
    assert main(["runs", str(tmp_path / "runs")]) == 0
    titles, line = capsys.readouterr().out.splitlines()
    assert titles.startswith("name") and line.split()[:3] == ["mine", "finished", "12/12"]


def test_a_fork_is_made_and_told_how_to_train(
    recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget, "runs_folder", tmp_path / "runs")
    for step in train(recipe, tmp_path / "runs" / "mine"):
        if step.step == 6:
            break
    assert main(["fork", "mine", "6", "its child", "optimiser.lr=1e-4", "about=a try"]) == 0
    assert "Train it: python -m engine train" in capsys.readouterr().err
    made = read_recipe(tmp_path / "runs" / "its child" / "recipe.toml")
    assert made.optimiser.lr == 1e-4 and made.about == "Forked from mine at step 6. a try"
    assert main(["fork", "mine", "6", "no", "seed=1"]) == 1
    assert "a fork can change" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "value"), [("1e-4", 1e-4), ("3", 3), ("[0.5, 0.9]", [0.5, 0.9]), ("true", True), ("linear", "linear")]
)
def test_a_change_is_written_as_in_a_recipe(text: str, value: object) -> None:
    assert change(f"a.b={text}") == ("a.b", value)


def test_with_wait_the_command_waits_for_its_turn_in_the_apps_queue_and_then_trains(
    recipe_path: Path, tmp_path: Path
) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    environment = {**os.environ, "LOUPE_MAX_TRAININGS": "1", "LOUPE_RUNS": str(runs)}
    queue, run = Queue(runs), RunFolder(runs / "small")
    before = wait_in(queue, "before", 1)
    try:
        until(lambda: queue.training() == 1)
        train_it = ["train", str(recipe_path), "--out", str(run.path), "--wait", "--quiet"]
        command = [sys.executable, "-m", "engine", *train_it]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)
        until(lambda: queue.names() == ["small"] and "turn.py" in command_of(process.pid), 60)
        status = read_status(run.status)
        assert status is not None and (status.state, status.pid, status.steps) == ("queued", process.pid, 12)
        again = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        assert again.returncode == 1 and "must be free, got a run that process" in again.stderr
        before.send_signal(signal.SIGKILL)
        _, said = process.communicate(timeout=90)
        assert process.returncode == 0 and "Finished: " in said
        assert read_recipe(run.recipe) == read_recipe(recipe_path)
    finally:
        before.kill()
        before.wait()


def test_under_torchrun_nobody_waits(
    recipe_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["train", str(recipe_path), "--out", str(tmp_path / "run"), "--wait"]) == 1
    assert "under torchrun leave it out" in capsys.readouterr().err


def test_a_process_that_is_started_as_a_command_lets_no_thread_spin() -> None:
    """OpenMP says what it was told when PyTorch loaded it."""
    environment = {key: value for key, value in os.environ.items() if key != "OMP_WAIT_POLICY"}
    environment["OMP_DISPLAY_ENV"] = "verbose"
    command = [sys.executable, "-m", "engine", "runs", "nowhere"]
    said = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True).stderr
    spins = [line.split("'")[1] for line in said.splitlines() if "GOMP_SPINCOUNT" in line]
    if not spins:
        pytest.skip("this PyTorch has another OpenMP")
    assert spins[0] == "0"
