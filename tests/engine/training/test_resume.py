"""A run that was left, stopped or killed ends with the weights of one that was not."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine.checkpoints import load
from engine.checkpoints.facts import read_facts
from engine.checkpoints.locate import locate
from engine.training import Recipe, RunFolder, Step, loop, read_recipe, read_status, train
from engine.training.launch.machine import Abilities
from engine.training.run import export
from engine.training.run.atomic import replace_atomically
from engine.training.run.latest import read_progress
from engine.training.run.status import Status, write_status

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]


def weights(run: RunFolder) -> dict[str, torch.Tensor]:
    return load(run.path).model.state_dict()


def same(one: RunFolder, other: RunFolder) -> bool:
    ours, theirs = weights(one), weights(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def until(happened: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def numbers(run: RunFolder) -> list[tuple[object, ...]]:
    """What of the metrics does not depend on the clock."""
    keys = ("step", "loss", "accuracy", "held_out_loss", "lr", "grad_norm", "tokens")
    return [tuple(line[key] for key in keys) for line in run.read_metrics()]


@pytest.fixture
def unbroken(recipe: Recipe, tmp_path: Path) -> RunFolder:
    run = RunFolder(tmp_path / "unbroken")
    for _ in train(recipe, run.path):
        pass
    return run


def test_two_runs_of_one_recipe_are_equal_and_another_seed_is_not(
    unbroken: RunFolder, recipe: Recipe, tmp_path: Path
) -> None:
    again, other = RunFolder(tmp_path / "again"), RunFolder(tmp_path / "other")
    list(train(recipe, again.path))
    list(train(replace(recipe, seed=4), other.path))
    assert same(unbroken, again)
    assert not same(unbroken, other)


def test_a_run_goes_on_with_as_many_threads_as_it_began_with_wherever_that_is(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums are rounded otherwise with another number of threads."""
    free = replace(recipe, machine=replace(recipe.machine, threads=0))
    used, run = list[int](), RunFolder(tmp_path / "r")

    def of_cores(cores: int, background: bool = False) -> None:
        monkeypatch.setattr(Abilities, "of_this_machine", lambda: Abilities(cuda=False, bfloat16=False, cores=cores))
        monkeypatch.setattr(torch, "set_num_threads", used.append)
        monkeypatch.setattr(loop, "lower_priority", lambda: None)
        for step in train(free, run.path, background):
            if step.step:
                break

    of_cores(6, background=True)
    status = read_status(run.status)
    assert status is not None and len(status.chosen) == 5
    assert status.chosen[3].startswith("Threads 3: a share of 6 cores for each of the 2 trainings")
    assert status.chosen[4].startswith("Priority low")
    of_cores(2)
    status = read_status(run.status)
    assert status is not None and status.chosen[3:] == ("Threads 3: as it began.",)
    assert used == [3, 3]
    assert export.command("r", tmp_path).endswith(" --threads 3")


@pytest.mark.parametrize("left_at", [0, 1, 5, 7, 12])
def test_a_run_that_was_left_goes_on_bit_for_bit(
    unbroken: RunFolder, recipe: Recipe, tmp_path: Path, left_at: int
) -> None:
    run = RunFolder(tmp_path / "left")
    for step in train(recipe, run.path):
        if step.step == left_at:
            break
    progress, status = read_progress(run.latest), read_status(run.status)
    assert progress is not None and progress.step == left_at
    assert status is not None and (status.state, status.step) == ("stopped", left_at)
    torch.manual_seed(99)  # whatever else the process draws does not matter
    list(train(recipe, run.path))
    assert same(unbroken, run)
    assert numbers(run) == numbers(unbroken)


HEAD_ONLY = """
[train]
parts = "head"
decay = 0.5
patience = 9
"""


LORA = """
[train]
parts = "lora"

[lora]
rank = 2
targets = ["attn.q"]
"""


@pytest.mark.parametrize("more", ["", HEAD_ONLY, LORA], ids=["all", "head", "lora"])
def test_a_killed_process_goes_on_from_latest_bit_for_bit(recipe_path: Path, tmp_path: Path, more: str) -> None:
    text = recipe_path.read_text()
    recipe_path.write_text(text.replace("dropout", "tied = false\ndropout") + more if more else text)
    unbroken, run = RunFolder(tmp_path / "unbroken"), RunFolder(tmp_path / "killed")
    list(train(read_recipe(recipe_path), unbroken.path))
    command = [sys.executable, "-m", "engine", "train", str(recipe_path), "--out", str(run.path), "--quiet"]
    slow = "import time, engine.training.trainer as t, engine.cli.main as c, sys\n"
    slow += "a = t.Trainer.advance\nt.Trainer.advance = lambda *x, **y: (time.sleep(0.03), a(*x, **y))[1]\n"
    slow += "sys.exit(c.main())"
    process = subprocess.Popen([sys.executable, "-c", slow, *command[3:]], cwd=ROOT)
    until(lambda: len(run.read_metrics()) >= 9)  # step 8, three after what latest/ holds
    process.send_signal(signal.SIGKILL)
    process.wait()
    progress, status = read_progress(run.latest), read_status(run.status)
    assert progress is not None and progress.step in (5, 10)
    assert status is not None and status.state == "killed"
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    assert same(unbroken, run)
    assert numbers(run) == numbers(unbroken)
    kept = load_file(next(run.latest.glob("optimiser-*")))
    learned = {name.partition(".")[2] for name in kept if not name.startswith("held.")}
    assert more != HEAD_ONLY or learned == {"head.weight"}
    assert more != LORA or all(name.startswith("adapter.") and "attn/q" in name for name in learned)


def test_an_interrupt_leaves_a_run_that_the_same_command_finishes(
    unbroken: RunFolder, recipe_path: Path, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path / "interrupted")
    slow = "import time, engine.training.trainer as t, engine.cli.main as c, sys\n"
    slow += "a = t.Trainer.advance\nt.Trainer.advance = lambda *x, **y: (time.sleep(0.05), a(*x, **y))[1]\n"
    slow += "sys.exit(c.main())"
    arguments = ["train", str(recipe_path), "--out", str(run.path)]
    process = subprocess.Popen([sys.executable, "-c", slow, *arguments], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    until(lambda: len(run.read_metrics()) >= 4)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    status = read_status(run.status)
    assert process.returncode == 130 and "The same command continues it" in said
    assert status is not None and status.state == "stopped" and 3 <= status.step < 12
    published = tmp_path / "published"
    finished = subprocess.run(
        [sys.executable, "-m", "engine", *arguments, "--publish", str(published), "--licence", "MIT"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "12/12" in finished.stderr and "held-out=" in finished.stderr
    assert same(unbroken, run)
    assert read_facts(locate(published), load(published).card).licence == "MIT"
    assert torch.equal(load(published).model.embed.tokens.weight, weights(unbroken)["embed.tokens.weight"])


def test_a_write_that_is_cut_short_leaves_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("older")
    with pytest.raises(KeyboardInterrupt), replace_atomically(path) as partial:
        partial.write_text("half")
        raise KeyboardInterrupt
    assert path.read_text() == "older"
    assert os.listdir(tmp_path) == ["file"]


def test_latest_is_whole_when_a_kill_falls_between_its_two_files(
    unbroken: RunFolder, recipe: Recipe, tmp_path: Path
) -> None:
    run = RunFolder(tmp_path / "between")
    for step in train(recipe, run.path):
        if step.step == 6:
            break
    (run.latest / "optimiser-0000009.safetensors").write_bytes(b"of a save that did not come to its model")
    list(train(recipe, run.path))
    assert same(unbroken, run)


def test_a_finished_run_can_be_trained_longer(recipe: Recipe, tmp_path: Path) -> None:
    list(train(recipe, tmp_path / "run"))
    longer = replace(recipe, schedule=replace(recipe.schedule, steps=15))
    more: list[Step] = list(train(longer, tmp_path / "run"))
    assert [step.step for step in more] == [13, 14, 15]


def test_another_recipe_in_the_same_folder_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    list(train(recipe, tmp_path / "run"))
    other = replace(recipe, optimiser=replace(recipe.optimiser, lr=1.0), seed=9)
    with pytest.raises(ValueError, match="got one whose optimiser, seed differs"):
        list(train(other, tmp_path / "run"))


def test_a_folder_that_a_living_process_trains_in_is_refused(recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    write_status(tmp_path / "run" / "status.json", Status("running", pid=os.getppid()))
    with pytest.raises(ValueError, match=f"that process {os.getppid()} on .* is training"):
        list(train(recipe, tmp_path / "run"))
