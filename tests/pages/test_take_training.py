"""What is taken away of a training: lines that give what its looks gave, numbers with names, a file that has it all."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.training.probe.frames import Frame, read_frames
from engine.training.probe.probe import read_probe
from engine.training.probe.snapshot_frames import frame_files
from pages.controls.train import export as training_whole
from pages.controls.train.export import OF_A_STEP, pack_recording, training_export
from pages.controls.train.questions import answer as answer_question
from pages.controls.train.session import RECORDED, Session
from tests.pages.test_take import as_question
from views.core.payload import Named, unpack

ROOT = Path(__file__).parents[2]
SHOWN = {"run": "", "recorded": True, "overlays": [""], "plan": {"name": "reverse"}}
HEAD = {"attention": "cross_attn", "layer": 1, "head": 0, "position": 2}


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture(scope="module")
def frames() -> dict[int, Frame]:
    probe = read_probe(RECORDED)
    assert probe is not None
    return {one.step: one for one in read_frames(frame_files(RECORDED, probe)[0]).frames}


def take(session: Session, **query: Any) -> tuple[dict[str, Any], dict[str, Named]]:
    export = training_export(session, "", SHOWN, {})
    question = {"trace": export.digest, **as_question(query, export.header)}
    return unpack(answer_question(session, question, export.page))


def rows(session: Session, matrix: str, step: int, **more: Any) -> list[dict[str, str]]:
    asked = {"take": "data", "format": "csv", "matrix": matrix, "step": step, "other": 0, **HEAD, **more}
    file = take(session, **asked)[1]["file"].data.tobytes().decode()
    return list(csv.DictReader(io.StringIO(file)))


@pytest.mark.parametrize("step", [1000, 136])
def test_the_lines_give_what_was_seen_at_a_step_with_weights_and_at_one_without(
    session: Session, frames: dict[int, Frame], step: int, tmp_path: Path
) -> None:
    """Run from another folder, by a Python that knows the engine."""
    lines = take(session, take="python", step=step, other=0, **HEAD)[0]["lines"]
    assert ("run.snapshot" in lines) == (step == 1000)
    lines += "import json\nprint(json.dumps([pattern.tolist(), frame['loss'].tolist(), frame['top.ids'].tolist()]))\n"
    known = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", lines], cwd=tmp_path, env=known, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    pattern, losses, best = json.loads(done.stdout.splitlines()[-1])
    there = frames[step].tensors
    np.testing.assert_allclose(np.array(pattern) * 255, there["patterns.cross_attn"][1, 0].numpy(), atol=1.01)
    np.testing.assert_allclose(losses, there["loss"].numpy(), atol=2e-4)
    assert [row[0] for row in best] == there["top.ids"][:, 0].tolist()


def test_a_head_has_its_tokens_and_two_steps_their_difference(session: Session, frames: dict[int, Frame]) -> None:
    shares = [frames[step].tensors["patterns.cross_attn"][1, 0].numpy() / 255 for step in (0, 136)]
    found = rows(session, "pattern of this head", 136)
    assert [row["key_token"] for row in found[:6]] == list("kwtovf")
    assert [row["query_token"] for row in found[::6]] == ["<s>", *"fvotwk"]
    np.testing.assert_allclose([float(row["pattern"]) for row in found], shares[1].ravel(), atol=1e-6)
    change = [float(row["pattern"]) for row in rows(session, "what changed of this head", 0, other=136)]
    np.testing.assert_allclose(change, (shares[1] - shares[0]).ravel(), atol=1e-6)


def test_answers_losses_and_curves_are_those_of_the_run(session: Session, frames: dict[int, Frame]) -> None:
    answers = rows(session, "answers at each position", 1000)
    assert [row["answer"] for row in answers if row["right"] == "True"] == [*"fvotwk", "</s>"]
    losses = [float(row["loss"]) for row in rows(session, "loss at each position", 1000)]
    np.testing.assert_allclose(losses, frames[1000].tensors["loss"].numpy(), rtol=1e-6)
    curves = rows(session, "curves", 1000)
    told = [json.loads(line) for line in (RECORDED / "metrics.jsonl").read_text().splitlines()]
    assert [int(row["step"]) for row in curves] == [line["step"] for line in told]
    assert float(curves[-1]["loss"]) == pytest.approx(told[-1]["loss"], rel=1e-6)


def test_gradients_and_histograms_are_those_that_were_watched(session: Session) -> None:
    told = [json.loads(line) for line in (RECORDED / "watch.jsonl").read_text().splitlines()]
    norms = [float(row["norm"]) for row in rows(session, "gradients", 0)]
    assert norms == pytest.approx([norm for line in told for norm in line["gradients"].values()])
    counts = [int(row["count"]) for row in rows(session, "weights", 0)]
    assert counts == [count for line in told for _, _, bins in line["weights"].values() for count in bins]


@pytest.mark.parametrize("format", ["csv", "parquet", "npz"])
@pytest.mark.parametrize("matrix", [*OF_A_STEP, "what happened", "activations"])
def test_everything_is_there_in_every_format(session: Session, matrix: str, format: str) -> None:
    asked = {"matrix": matrix, "format": format, "step": 136, "other": 0, **HEAD}
    assert len(take(session, take="data", **asked)[1]["file"].data) > 100


@pytest.mark.parametrize(
    "change",
    [{"step": 135}, {"layer": 7}, {"head": -1}, {"attention": "none"}, {"matrix": "nothing"}, {"step": "136"}],
)
def test_what_a_run_has_not_is_a_sentence(session: Session, change: dict[str, Any]) -> None:
    asked = {"take": "data", "format": "csv", "matrix": "pattern of this head", "step": 136, "other": 0, **HEAD}
    with pytest.raises(ValueError, match=r"\w.*\."):
        take(session, **{**asked, **change})


def test_a_file_has_every_look_and_the_curves_that_are_laid_over(session: Session, frames: dict[int, Frame]) -> None:
    header, arrays = unpack(pack_recording(session, "", SHOWN))
    assert [frame["step"] for frame in header["told"]["frames"]] == sorted(frames)
    assert header["told"]["note"] == "" and header["told"]["marks"]
    last = arrays[f"frames.{len(frames) - 1}.patterns.cross_attn"].data
    np.testing.assert_array_equal(last, frames[1000].tensors["patterns.cross_attn"].numpy())
    np.testing.assert_array_equal(arrays["laid.0.loss"].data, arrays["metrics.loss"].data)
    page = take(session, take="html", state="#step=136")[1]["file"].data.tobytes().decode()
    assert "Content-Security-Policy" in page and "/train?" in page


def test_a_file_says_how_many_looks_it_leaves_out_and_keeps_those_where_something_happened(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_whole, "ROOM", 20_000)
    told = unpack(pack_recording(session, "", SHOWN))[0]["told"]
    steps = [frame["step"] for frame in told["frames"]]
    assert len(steps) < 30 and {0, 1000} <= set(steps)
    assert {mark["step"] for mark in told["marks"]} & set(steps)
    assert f"{len(steps)} are in this file" in told["note"]
