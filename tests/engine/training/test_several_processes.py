"""What `torchrun --nproc-per-node 2` starts: two processes that end with the weights of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from engine.checkpoints import load
from engine.training import RunFolder, read_recipe, read_status, train
from engine.training.probe.frames import read_frames
from engine.training.probe.probe import read_probe
from engine.training.probe.snapshot_frames import frame_files
from tests.engine.training.starting import together

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("optimiser", "accumulate"), [("adamw", 1), ("sgd", 1), ("muon", 1), ("adamw", 2)], ids=lambda value: str(value)
)
def test_two_processes_come_to_the_weights_of_one(
    optimiser: str, accumulate: int, recipe_path: Path, tmp_path: Path
) -> None:
    text = recipe_path.read_text().replace("dropout = 0.1\n", "")
    text = text.replace("lr = 1e-2", f'lr = 1e-2\neps = 1e-4\nkind = "{optimiser}"')
    recipe_path.write_text(text.replace("context = 8", f"context = 8\naccumulate = {accumulate}"))
    one, two = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "two")
    for _ in train(read_recipe(recipe_path), one.path):
        pass
    together(recipe_path, two.path, 2)
    status = read_status(two.status)
    assert status is not None and (status.state, status.step) == ("finished", 12)
    ours, theirs = load(one.path).model.state_dict(), load(two.path).model.state_dict()
    for name in ours:
        rounding = 2e-3 if optimiser == "muon" else 1e-5  # Muon computes in bfloat16
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-3, atol=rounding)
    alone, shared = ({line["step"]: line for line in run.read_metrics()} for run in (one, two))
    assert all(shared[step]["loss"] == pytest.approx(alone[step]["loss"], rel=1e-3) for step in range(1, 13))


def test_the_command_under_torchrun_comes_to_the_same_curve_and_only_the_first_process_writes(
    recipe_path: Path, tmp_path: Path
) -> None:
    recipe_path.write_text(recipe_path.read_text().replace("dropout = 0.1\n", ""))
    one, two = RunFolder(tmp_path / "one"), RunFolder(tmp_path / "two")
    for _ in train(read_recipe(recipe_path), one.path):
        pass
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "engine", "train", str(recipe_path), "--out", str(two.path), "--quiet"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    alone, shared = (run.read_metrics() for run in (one, two))
    assert [line["step"] for line in shared] == [line["step"] for line in alone] == list(range(13))
    for name in ("loss", "held_out_loss"):
        theirs = [(line[name] is None, line[name] or 0.0) for line in alone]
        assert [(line[name] is None, line[name] or 0.0) for line in shared] == [
            (none, pytest.approx(value, rel=1e-3)) for none, value in theirs
        ]
    assert [line["tokens"] for line in shared] == [line["tokens"] for line in alone]
    probe = read_probe(two.path)
    assert probe is not None
    seen = [frame.step for frame in read_frames(frame_files(two.path, probe)[0]).frames]
    assert seen == sorted(set(seen)) and set(two.snapshot_steps()) <= set(seen)
    watched = [json.loads(line)["step"] for line in (two.path / "watch.jsonl").read_text().splitlines()]
    assert watched == sorted(set(watched)) and watched
    assert not list(two.path.rglob("*.partial"))
