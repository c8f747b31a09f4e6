"""A run to take away."""

import csv
import io
import json
import math
import shlex
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import transformers

from engine.budget import budget
from engine.checkpoints import load
from engine.cli.main import main
from engine.training import Recipe, RunFolder, read_recipe, train
from engine.training.run.export import checkpoint, command, metrics_csv, tensorboard
from engine.training.run.fork import fork


@pytest.fixture
def run(recipe: Recipe, tmp_path: Path) -> RunFolder:
    for _ in train(recipe, tmp_path / "runs" / "my run"):
        pass
    return RunFolder(tmp_path / "runs" / "my run")


def unzipped(file: Path, to: Path) -> Path:
    with zipfile.ZipFile(file) as zipped:
        zipped.extractall(to)
    (folder,) = to.iterdir()
    return folder


def test_a_step_is_a_folder_that_transformers_reads_to_the_same_logits(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    step = run.snapshot_steps()[2]
    file = checkpoint("my run", step, tmp_path / "out", run.path.parent)
    assert file.name == f"my-run-step-{step}.zip"
    folder = unzipped(file, tmp_path / "unzipped")
    ours = load(run.snapshot(step)).model
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    ids = torch.randint(ours.config.vocab_size, (2, 8), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        torch.testing.assert_close(theirs(ids).logits, ours(ids), atol=1e-4, rtol=1e-4)
    opened = load(folder)
    assert opened.tokenizer is not None and opened.tokenizer.encode("the cat").ids
    measured = next(line for line in run.read_metrics() if line["step"] == step)
    assert opened.card["steps"] == step and opened.card["held_out_loss"] == measured["held_out_loss"]


def test_the_newest_step_of_a_finished_run_has_its_whole_card(run: RunFolder, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    folder = unzipped(checkpoint("my run", None, tmp_path / "out", run.path.parent), tmp_path / "unzipped")
    theirs, ours = load(folder), load(run.checkpoint)
    assert theirs.card == ours.card and theirs.card["parameters"]
    assert torch.equal(theirs.model.embed.tokens.weight, ours.model.embed.tokens.weight)


def test_a_step_that_was_not_kept_is_said(run: RunFolder, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="my run has kept no weights of step 3"):
        checkpoint("my run", 3, tmp_path, run.path.parent)


def test_the_curves_are_a_table_with_a_column_for_each_number(run: RunFolder) -> None:
    metrics = run.read_metrics()
    more = metrics[-1] | {"step": 13, "also": {"exact": 0.5, "held_out_exact": 0.25}}
    run.log(more)
    rows = list(csv.DictReader(io.StringIO(metrics_csv("my run", run.path.parent))))
    assert [int(row["step"]) for row in rows] == [line["step"] for line in metrics] + [13]
    for row, line in zip(rows, metrics, strict=False):
        for name in ("loss", "held_out_loss", "lr", "grad_norm", "tokens"):
            assert row[name] == ("" if line[name] is None else str(line[name]))
    assert (rows[-1]["exact"], rows[-1]["held_out_exact"], rows[0]["exact"]) == ("0.5", "0.25", "")
    assert "also" not in rows[0]


def records(data: bytes) -> Iterator[bytes]:
    """TFRecords, their checksums verified: CRC-32C of Castagnoli's polynomial, masked, worked out bit by bit."""

    def masked(part: bytes) -> int:
        value = 0xFFFFFFFF
        for byte in part:
            value ^= byte
            for _ in range(8):
                value = (value >> 1) ^ (0x82F63B78 if value & 1 else 0)
        value ^= 0xFFFFFFFF
        return (((value >> 15) | (value << 17)) + 0xA282EAD8) & 0xFFFFFFFF

    at = 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        assert struct.unpack_from("<I", data, at + 8)[0] == masked(data[at : at + 8])
        record = data[at + 12 : at + 12 + length]
        assert struct.unpack_from("<I", data, at + 12 + length)[0] == masked(record)
        yield record
        at += 16 + length


def test_the_curves_are_events_that_tensorboard_reads(run: RunFolder) -> None:
    from tensorboardX import summary
    from tensorboardX.proto.event_pb2 import Event

    run.log(run.read_metrics()[-1] | {"step": 13, "loss": 1e39})
    name, data = tensorboard("my run", run.path.parent)
    assert name.startswith("events.out.tfevents.")
    found: dict[str, dict[int, float]] = {}
    version, recipe, *events = (Event.FromString(record) for record in records(data))
    assert version.file_version == "brain.Event:2"
    (value,) = recipe.summary.value
    assert value == summary.text("recipe", f"```toml\n{run.recipe.read_text()}```").value[0]
    for event in events:
        assert event.wall_time >= recipe.wall_time > 1e9
        for value in event.summary.value:
            if value.HasField("simple_value"):
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    tags = {"loss/training": "loss", "loss/held_out": "held_out_loss", "training/lr": "lr", "training/tokens": "tokens"}
    for tag, key in tags.items():
        wanted = {line["step"]: line[key] for line in run.read_metrics() if line[key] is not None}
        wanted |= {13: math.inf} if key == "loss" else {}
        assert found[tag].keys() == wanted.keys()
        assert all(math.isclose(found[tag][step], value, rel_tol=1e-6) for step, value in wanted.items())


def obey(line: str) -> None:
    """Does what a command line says."""
    python, *engine, what = shlex.split(line)[:4]
    assert [python, *engine] == ["python", "-m", "engine"] and main([what, *shlex.split(line)[4:]]) == 0


def test_the_command_makes_the_same_run_again(run: RunFolder) -> None:
    line = command("my run", run.path.parent)
    assert line.startswith("python -m engine train ")
    obey(f"{line} --quiet")
    ours, theirs = load(run.path).model.state_dict(), load(run.path.parent / "my run again").model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_the_command_of_a_fork_makes_the_same_fork_again(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    place, step = run.path.parent, run.snapshot_steps()[2]
    made = fork("my run", step, "child", {"optimiser.lr": 0.5, "optimiser.betas": [0.5, 0.75]}, place)
    for _ in train(read_recipe(made / "recipe.toml"), made):
        pass
    monkeypatch.setattr(budget, "runs_folder", place)
    for line in command("child", place).splitlines():
        obey(line)
    ours, theirs = load(made).model.state_dict(), load(place / "child again").model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)
    recipe = read_recipe(place / "child again" / "recipe.toml")
    assert recipe.optimiser.lr == 0.5 and recipe.optimiser.betas == (0.5, 0.75)
    origin = json.loads((place / "child again" / "origin.json").read_text())
    assert (origin["run"], origin["step"]) == ("my run", step)
