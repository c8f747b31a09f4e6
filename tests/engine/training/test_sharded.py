"""Two processes with half of every weight each: they end with the weights of one, and either goes on with the other's
run."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from engine.checkpoints import load
from engine.training import RunFolder, read_recipe, read_status, train
from engine.training.cluster.parallel import Peers, peers
from engine.training.launch.machine import Plan
from engine.training.probe.frames import read_frames
from engine.training.probe.probe import read_probe
from engine.training.probe.snapshot_frames import frame_files
from engine.training.trainer import Trainer
from tests.engine.training.starting import begin_together, together

MACHINE = Plan("cpu", None, scaled=False, compile=False, threads=1)
REWRITING = """
seed = 3

[model]
d_model = 16
layers = 2
attention = { heads = 2 }
mlp = { d_mlp = 32 }
positions = { kind = "relative" }
tied = true

[model.encoder]
layers = 1
attention = { heads = 2, mask = "full" }
mlp = { d_mlp = 32 }

[data.rewriting]
rule = "reverse"
shortest = 3
longest = 6
documents = 200

[data.tokenizer]
kind = "char"

[objective]
kind = "sequence_to_sequence"

[optimiser]
lr = 1e-2
eps = 1e-4
clip = 0.5

[schedule]
steps = 6
warmup = 3

[batch]
size = 8
context = 8

[log]
every = 1
held_out_every = 3
held_out_batches = 2
snapshots = 3
latest_every = 3

[machine]
device = "cpu"
threads = 1
"""


@pytest.fixture
def decoder(recipe_path: Path) -> Path:
    """Two blocks, a gradient that is clipped, rows in two parts."""
    text = recipe_path.read_text().replace("dropout = 0.1\n", "").replace("layers = 1", "layers = 2")
    text = text.replace("lr = 1e-2", "lr = 1e-2\neps = 1e-4\nclip = 0.5").replace("steps = 12", "steps = 6")
    recipe_path.write_text(text.replace("context = 8", "context = 8\naccumulate = 2"))
    return recipe_path


@pytest.fixture
def encoder_decoder(tmp_path: Path) -> Path:
    path = tmp_path / "rewriting.toml"
    path.write_text(REWRITING)
    return path


def sharded(recipe: Path, **changes: tuple[str, str]) -> Path:
    path, text = recipe.with_name("sharded.toml"), recipe.read_text() + "shard = true\n"
    for before, after in changes.values():
        assert before in text
        text = text.replace(before, after)
    path.write_text(text)
    return path


def train_alone(recipe: Path, run: RunFolder) -> None:
    for _ in train(read_recipe(recipe), run.path):
        pass


def train_sharded(recipe: Path, run: RunFolder) -> None:
    together(recipe, run.path, 2)


def compare(one: RunFolder, two: RunFolder, steps: int = 6) -> None:
    status = read_status(two.status)
    assert status is not None and (status.state, status.step) == ("finished", steps)
    for kind in ("model", "optimiser"):
        ours, theirs = (load_file(next(run.latest.glob(f"{kind}*"))) for run in (one, two))
        assert ours.keys() == theirs.keys()
        for name in ours:
            torch.testing.assert_close(theirs[name], ours[name], rtol=1e-3, atol=1e-4)
    ours, theirs = load(one.checkpoint).model.state_dict(), load(two.checkpoint).model.state_dict()
    for name in ours:
        torch.testing.assert_close(theirs[name], ours[name], rtol=0, atol=1e-4)
    cards = [json.loads((run.checkpoint / "card.json").read_text()) for run in (one, two)]
    assert cards[1]["loss"]["held_out"] == pytest.approx(cards[0]["loss"]["held_out"], rel=1e-5)
    assert cards[1].get("best_step") == cards[0].get("best_step")
    alone, shared = one.read_metrics(), two.read_metrics()
    assert [line["step"] for line in shared] == [line["step"] for line in alone] == list(range(steps + 1))
    for name in ("loss", "held_out_loss", "grad_norm"):
        expected = [None if line[name] is None else pytest.approx(line[name], rel=1e-5) for line in alone]
        assert [line[name] for line in shared] == expected


@pytest.mark.long
@pytest.mark.parametrize("kind", ["decoder", "encoder_decoder"])
def test_two_processes_with_half_of_the_weights_each_come_to_the_weights_of_one(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    recipe: Path = request.getfixturevalue(kind)
    one, two = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "two")
    train_alone(recipe, one)
    train_sharded(sharded(recipe), two)
    compare(one, two)
    status, probe = read_status(two.status), read_probe(two.path)
    assert status is not None and status.chosen[-1].startswith("Sharded over 2 processes")
    assert two.snapshot_steps() == one.snapshot_steps()
    assert probe is not None
    seen = [frame.step for frame in read_frames(frame_files(two.path, probe)[0]).frames]
    assert set(two.snapshot_steps()) <= set(seen)
    lines = [json.loads(line) for line in (two.path / "watch.jsonl").read_text().splitlines()]
    assert all(line["gradients"].keys() for line in lines if line["step"])
    assert (two.checkpoint / "card.json").exists() and not list(two.path.rglob("*.partial"))


@pytest.mark.long
@pytest.mark.parametrize("first", ["alone", "sharded"])
def test_a_run_goes_on_in_as_many_processes_as_one_likes(first: str, decoder: Path, tmp_path: Path) -> None:
    longer = {"steps": ("steps = 6", "steps = 9"), "shape": ("warmup = 3", 'warmup = 3\nshape = "constant"')}
    whole = {"shape": longer["shape"]}
    one, two = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "two")
    train_alone(sharded(decoder, **longer), one)
    begin, finish = (train_alone, train_sharded) if first == "alone" else (train_sharded, train_alone)
    begin(sharded(decoder, **whole), two)
    finish(sharded(decoder, **longer), two)
    compare(one, two, 9)


@pytest.mark.long
def test_a_part_that_learns_and_the_best_step_are_as_of_one_process(decoder: Path, tmp_path: Path) -> None:
    more = {
        "train": ("[machine]", '[train]\nparts = "last 1 block"\ndecay = 0.5\npatience = 1\n\n[machine]'),
        "rate": ("lr = 1e-2", "lr = 1.0"),  # too high: the second step is worse than the first
        "measured": ("held_out_every = 6", "held_out_every = 1"),
    }
    one, two = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "two")
    recipe = sharded(decoder, **more)
    train_alone(recipe, one)
    train_sharded(recipe, two)
    compare(one, two, 2)
    assert json.loads((two.checkpoint / "card.json").read_text())["best_step"] == 1


def look(recipe: Path, folder: Path, environment: Mapping[str, str]) -> None:
    """What a process holds, and how long the parts of its gradient are."""
    from engine.training.cluster.sharded import ShardedTrainer, local_part

    os.environ |= environment
    with peers("cpu") as here:
        trainer = ShardedTrainer(read_recipe(recipe), RunFolder(folder / environment["RANK"]), MACHINE, here)
        update = trainer.advance(closely=here.leads)
        held = sum(local_part(parameter).numel() for parameter in trainer.parameters.values())
        states = (state for part in trainer.optimiser.parts for state in part.state.values())
        remembered = sum(local_part(tensor).numel() for state in states for tensor in state.values() if tensor.dim())
        norms = {name: float(norm) for name, norm in update.gradients.items()}
        said = {"held": held, "remembered": remembered, "norms": norms, "norm": float(update.grad_norm)}
        (folder / f"{here.rank}.json").write_text(json.dumps(said))


def test_each_process_holds_half_of_the_weights_and_of_the_optimisers_memory(decoder: Path, tmp_path: Path) -> None:
    recipe = sharded(decoder)

    def begin(place: Mapping[str, str]) -> BaseProcess:
        process = get_context("forkserver").Process(target=look, args=(recipe, tmp_path, dict(place)))
        process.start()
        return process

    begin_together(2, begin)
    seen = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(2)]
    alone = Trainer(read_recipe(recipe), RunFolder(tmp_path / "alone"), MACHINE, Peers())
    update, total = alone.advance(closely=True), sum(parameter.numel() for parameter in alone.parameters.values())
    assert sum(one["held"] for one in seen) == total
    for one in seen:
        assert one["held"] == pytest.approx(total / 2, rel=0.02) and one["remembered"] == 2 * one["held"]
        assert one["norm"] == pytest.approx(float(update.grad_norm), rel=1e-5)
    expected = {name: pytest.approx(float(norm), rel=1e-5) for name, norm in update.gradients.items()}
    assert seen[0]["norms"] == expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("[optimiser]", '[optimiser]\nkind = "muon"'), 'optimiser.kind "muon", which multiplies whole matrices'),
        (("[machine]", '[train]\nparts = "lora"\n\n[machine]'), 'train.parts "lora", which adds to whole matrices'),
        (("layers = 2", "layers = 2\ndistinct = 1"), "model.distinct, by which layers have the same tensors"),
        (('device = "cpu"', 'device = "cpu"\ncompile = "on"'), 'machine.compile "on", which takes whole weights'),
    ],
)
def test_what_needs_whole_weights_is_refused(change: tuple[str, str], reason: str, decoder: Path) -> None:
    with pytest.raises(ValueError, match=f"machine.shard must be false with {reason}, got true; leave out one"):
        read_recipe(sharded(decoder, change=change))


def test_scaled_losses_are_refused(decoder: Path, tmp_path: Path) -> None:
    from engine.training.cluster.sharded import ShardedTrainer

    with pytest.raises(ValueError, match="the precision is float16"):
        ShardedTrainer(
            read_recipe(sharded(decoder)), RunFolder(tmp_path / "run"), replace(MACHINE, scaled=True), Peers(0, 2)
        )
