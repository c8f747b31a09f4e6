"""Killed at any moment, and resumed, a run ends with the weights of one that was not."""

import random
import time
from pathlib import Path

import pytest
import torch

from engine.checkpoints import load
from engine.training import RunFolder, read_recipe, read_status, train
from engine.training.run.latest import read_progress
from tests.engine.training.starting import start

pytestmark = pytest.mark.long

KILLS, STEPS = 20, 200
LONGEST = 120.0  # seconds for one start to come as far as it is waited for


def test_a_run_that_is_killed_twenty_times_ends_with_the_same_weights(recipe_path: Path, tmp_path: Path) -> None:
    text = recipe_path.read_text().replace("steps = 12", f"steps = {STEPS}").replace("every = 1\n", "every = 3\n", 1)
    recipe_path.write_text(text.replace("held_out_every = 6", "held_out_every = 20"))
    run, draw = RunFolder(tmp_path / "killed"), random.Random(0)
    states = []
    for kill in range(KILLS):
        process = start(recipe_path, run.path)
        wait(run, (kill + 1) * STEPS // (KILLS + 2) if kill % 4 else 0)
        time.sleep(draw.uniform(0, 0.12))  # in the middle of an update, of a save, of the beginning
        process.kill()
        process.join()
        status = read_status(run.status)
        states.append("" if status is None else status.state)
    assert states.count("killed") >= KILLS // 2  # others before the first word, or after the last
    last = start(recipe_path, run.path)
    last.join()
    status = read_status(run.status)
    assert last.exitcode == 0 and status is not None and (status.state, status.step) == ("finished", STEPS)
    unbroken = RunFolder(tmp_path / "unbroken")
    for _ in train(read_recipe(recipe_path), unbroken.path):
        pass
    ours, theirs = load(run.path).model.state_dict(), load(unbroken.path).model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert same_lines(run, unbroken)
    assert run.snapshot_steps() == unbroken.snapshot_steps()
    assert not list(run.path.rglob("*.partial"))


def wait(run: RunFolder, step: int) -> None:
    """Until latest/ is of this step or a later one."""
    end = time.monotonic() + LONGEST
    while reached(run) < step:
        assert time.monotonic() < end, "it did not come that far in time"
        time.sleep(0.005)


def reached(run: RunFolder) -> int:
    progress = read_progress(run.latest)
    return 0 if progress is None else progress.step


def same_lines(one: RunFolder, other: RunFolder) -> bool:
    """Every step that both logged: what is logged besides depends on the clock."""
    keys = ("loss", "accuracy", "grad_norm", "held_out_loss", "tokens")
    ours, theirs = ({line["step"]: [line[key] for key in keys] for line in run.read_metrics()} for run in (one, other))
    assert {*range(0, STEPS, 3)} <= ours.keys() & theirs.keys()
    return all(ours[step] == theirs[step] for step in ours.keys() & theirs.keys())
