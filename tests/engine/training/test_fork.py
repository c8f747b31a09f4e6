"""Runs that go on from a step of another."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.checkpoints import load
from engine.training import Recipe, RunFolder, read_recipe, read_status, train
from engine.training.run.fork import fork
from engine.training.run.latest import read_progress
from engine.training.run.origin import read_origin
from engine.training.run.runs import runs


def weights(run: RunFolder) -> dict[str, torch.Tensor]:
    return load(run.path).model.state_dict()


def same(one: RunFolder, other: RunFolder) -> bool:
    ours, theirs = weights(one), weights(other)
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def numbers(run: RunFolder) -> list[dict[str, Any]]:
    clock = ("seconds", "tokens_per_second")
    return [{key: value for key, value in line.items() if key not in clock} for line in run.read_metrics()]


def train_all(folder: Path) -> RunFolder:
    for _ in train(read_recipe(folder / "recipe.toml"), folder):
        pass
    return RunFolder(folder)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def left(recipe: Recipe, place: Path) -> RunFolder:
    """A run that was left after step 7, of which latest/ has step 7 and snapshots 0, 1, 2 and 5 or so."""
    for step in train(recipe, place / "parent"):
        if step.step == 7:
            break
    return RunFolder(place / "parent")


@pytest.fixture
def unbroken(recipe: Recipe, tmp_path: Path) -> RunFolder:
    for _ in train(recipe, tmp_path / "unbroken"):
        pass
    return RunFolder(tmp_path / "unbroken")


def test_from_the_newest_step_and_unchanged_it_comes_to_the_same_weights_bit_for_bit(
    left: RunFolder, unbroken: RunFolder, place: Path
) -> None:
    made = fork("parent", 7, "child", folder=place)
    assert made == place / "child"
    status = read_status(made / "status.json")
    assert status is not None and (status.state, status.step, status.can_resume) == ("stopped", 7, True)
    child = train_all(made)
    assert same(child, unbroken)
    assert numbers(child) == numbers(unbroken)  # the curve before the fork is its own past
    assert child.snapshot_steps() == unbroken.snapshot_steps()
    assert not same(left, unbroken)  # the parent stayed where it was
    card = json.loads((child.checkpoint / "card.json").read_text())
    assert card["about"] == "Forked from parent at step 7."


def test_a_snapshot_goes_on_with_its_weights_and_an_optimiser_begun_anew_and_says_so(
    left: RunFolder, unbroken: RunFolder, place: Path
) -> None:
    step = max(kept for kept in left.snapshot_steps() if 0 < kept < 7)
    child = RunFolder(fork("parent", step, "child", folder=place))
    told = f"Forked from parent at step {step}, with the optimiser's memory begun anew."
    assert read_recipe(child.recipe).about == told
    assert not read_origin(child).memory
    ours, theirs = weights(child), load(left.snapshot(step)).model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    progress, line = read_progress(child.latest), left.read_metrics()[step]
    assert progress is not None and (progress.step, progress.tokens) == (step, line["tokens"])
    for made in train(read_recipe(child.recipe), child.path):
        if made.step == step + 2:
            break
    train_all(child.path)  # left and continued: from then on with its memory
    assert [line["step"] for line in child.read_metrics()] == list(range(13))
    assert not same(child, unbroken)
    again = train_all(fork("parent", step, "again", folder=place))
    assert same(child, again)
    assert json.loads((child.checkpoint / "card.json").read_text())["about"] == told


def test_the_first_update_after_a_fork_from_a_snapshot_is_adams_first(left: RunFolder, place: Path) -> None:
    """With no memory, every weight moves by the learning rate whatever its gradient (Kingma & Ba 2015, section 2.1)."""
    changes = {"optimiser.weight_decay": 0.0, "schedule.warmup": 0, "schedule.floor": 1.0, "optimiser.lr": 0.001}
    step = max(kept for kept in left.snapshot_steps() if 0 < kept < 7)
    child = RunFolder(fork("parent", step, "child", changes, place))
    name = "blocks.0.attn.v.weight"
    before = weights(child)[name]
    for made in train(read_recipe(child.recipe), child.path):
        if made.step == step + 1:
            break
    moved = (weights(child)[name] - before).abs()
    assert moved.max() <= 0.001 * 1.001 and moved.median() > 0.00099


def test_what_is_changed_is_changed_and_the_rest_is_not(left: RunFolder, place: Path) -> None:
    made = fork("parent", 7, "slower", {"optimiser.lr": 1e-4, "schedule.steps": 20, "log.every": 2}, place)
    theirs, ours = read_recipe(left.recipe), read_recipe(made / "recipe.toml")
    assert ours.optimiser == replace(theirs.optimiser, lr=1e-4)
    assert (ours.schedule.steps, ours.log.every, ours.model, ours.data) == (20, 2, theirs.model, theirs.data)
    origin = read_origin(RunFolder(made))
    assert (origin.run, origin.step) == ("parent", 7)
    assert origin.changes == ("optimiser.lr=0.0001", "schedule.steps=20", "log.every=2")
    assert train_all(made).read_metrics()[-1]["step"] == 20


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model.d_model": 32}, "a fork can change schedule.*, .* got model.d_model"),
        ({"data.text.path": "x"}, "got data.text.path"),
        ({"seed": 4}, "got seed"),
        ({"nothing.at": 4}, "got nothing.at"),
        ({"optimiser": 4}, "got optimiser"),
        ({"optimiser.speed": 4}, "optimiser.speed is not a known key"),
        ({"optimiser.lr": "fast"}, "optimiser.lr must be a number, got 'fast'"),
        ({"optimiser.lr": -1.0}, "optimiser.lr must be above 0"),
        ({"schedule.steps": 7}, "schedule.steps must be above 7 for a fork from there"),
        ({"batch.context": 4}, "model.context must be batch.context|batch.context"),
    ],
)
def test_what_cannot_be_changed_is_said_and_nothing_is_made(
    left: RunFolder, place: Path, changes: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        fork("parent", 7, "child", changes, place)
    assert [path.name for path in place.iterdir()] == ["parent"]


@pytest.mark.parametrize("step", [-1, 6, 8, 10**9])
def test_a_step_that_is_not_kept_is_refused_with_those_that_are(left: RunFolder, place: Path, step: int) -> None:
    assert step not in left.snapshot_steps()
    with pytest.raises(ValueError, match=f"parent must have kept step {step:,}; it has 0, .*7. Choose one of these"):
        fork("parent", step, "child", folder=place)


def test_at_step_0_a_fork_is_the_run_begun_again(left: RunFolder, unbroken: RunFolder, place: Path) -> None:
    child = train_all(fork("parent", 0, "child", folder=place))
    assert same(child, unbroken) and numbers(child) == numbers(unbroken)


def test_a_fork_outlives_its_parent_and_takes_no_second_room_for_its_past(left: RunFolder, place: Path) -> None:
    made = RunFolder(fork("parent", 7, "child", folder=place))
    assert made.snapshot(0).samefile(left.snapshot(0))
    before = {step: made.snapshot(step).read_bytes() for step in made.snapshot_steps()}
    shutil.rmtree(left.path)
    assert {step: made.snapshot(step).read_bytes() for step in made.snapshot_steps()} == before
    train_all(made.path)
    (found,) = runs(place)
    assert (found.origin.run, found.origin.step) == ("parent", 7) and not found.fault


def test_a_fork_never_changes_its_parent(left: RunFolder, place: Path) -> None:
    before = {path: path.read_bytes() for path in left.path.rglob("*") if path.is_file()}
    train_all(fork("parent", 7, "child", folder=place))
    train_all(fork("parent", 1, "other", {"optimiser.lr": 0.1}, place))
    assert {path: path.read_bytes() for path in left.path.rglob("*") if path.is_file()} == before


def test_a_fork_of_a_fork_tells_of_both(left: RunFolder, place: Path) -> None:
    fork("parent", 7, "child", folder=place)
    for step in train(read_recipe(place / "child" / "recipe.toml"), place / "child"):
        if step.step == 9:
            break
    made = fork("child", 9, "grandchild", folder=place)
    assert read_recipe(made / "recipe.toml").about == "Forked from child at step 9. Forked from parent at step 7."
