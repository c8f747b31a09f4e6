"""Sweeps over pairs on a cluster of Ray: what a node finds is what is found here, by the command as well."""

from pathlib import Path
from typing import Any

import pytest
import torch

from engine.analysis.interventions.pair_set import SweepOptions, read_pairs, sweep_pairs
from engine.analysis.interventions.sweep_file import read_sweep
from engine.budget import budget
from engine.cli import sweep as command
from engine.cli.main import main
from engine.runtime import library
from engine.training.cluster import ray_work
from engine.training.cluster.ray_kinds.pair_sweep import RayPairSweep, on_cluster
from engine.training.cluster.ray_work import TASK, compute_part, kinds
from engine.training.launch.job import JOB
from engine.training.run.atomic import read_json

MODEL, PARTS = "stories", 5
LINES = [f"Max gave the ball to {one}. The ball is with,Max gave the ball to Tom. The ball is with,{one}" for one in
         ("Anna", "Sara", "Tom", "Lily", "Ben")]  # fmt: skip


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    (tmp_path / "pairs.csv").write_text("\n".join(("clean,corrupted,answer", *LINES)))
    return tmp_path / "pairs.csv"


@pytest.fixture(autouse=True)
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Those that were given to a cluster that runs none."""
    given: list[dict[str, Any]] = []

    class Client:
        def submit_job(self, **job: Any) -> None:
            given.append(job)

    monkeypatch.setattr(ray_work, "connect", lambda address: Client())
    monkeypatch.setenv(JOB, "a")
    return given


def test_the_parts_of_nodes_are_what_is_swept_here(pairs: Path, jobs: list[dict[str, Any]], tmp_path: Path) -> None:
    checkpoint, rows = library.checkpoint(MODEL), read_pairs(pairs)
    options = SweepOptions(site="k", by=("pos", "head"), metric="KL", direction="break")
    work = RayPairSweep(MODEL, checkpoint, rows, options, tmp_path, "http://head")
    assert work.wait(0) == "has been submitted to Ray" and "loupe-sweep-" in jobs[0]["submission_id"]
    assert read_json(work.folder / TASK)["kind"] == "sweep" and set(kinds()) == {"survey", "sweep"}
    for part in range(PARTS):
        compute_part(work.folder, part)
        assert not work.wait(part)
    work.find = lambda numbers: pytest.fail("it is computed here")  # type: ignore[method-assign]
    whole, why = work.reach(), dict[int, str]()
    here = dict(sweep_pairs(checkpoint, rows, *options.arguments, why.__setitem__))
    assert {row: one for row, one in whole.items() if isinstance(one, str)} == why and [*why] == [2]
    for row, one in here.items():
        assert all(torch.equal(getattr(one, name), value) for name, value in vars(whole[row]).items())
    (work.folder / "part-1.safetensors").write_bytes(b"x")
    again = RayPairSweep(MODEL, checkpoint, rows, options, tmp_path, "http://head")
    assert torch.equal(again.reach()[1].effect, here[1].effect)  # type: ignore[union-attr]


def test_texts_of_two_lengths_have_no_places_by_position_in_whichever_parts(pairs: Path, tmp_path: Path) -> None:
    rows = [*read_pairs(pairs)[:1], *(one for one in read_pairs(pairs)[1:2])]
    rows[1] = rows[1].__class__("So " + rows[1].clean, "So " + rows[1].corrupted, rows[1].answer)
    work = RayPairSweep(MODEL, library.checkpoint(MODEL), rows, SweepOptions(site="MLP"), tmp_path, "http://head")
    with pytest.raises(ValueError, match="texts of one length, got 1[0-9] tokens and, in row 2, 1"):
        work.reach()


def test_the_command_gives_its_sweep_to_the_cluster(
    pairs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out, made = pairs.with_name("found.parquet"), list[RayPairSweep]()

    def take(*given: Any) -> RayPairSweep | None:
        if (work := on_cluster(*given)) is not None:
            made.append(work)
        return work

    def compute(seconds: float) -> None:
        for part in range(PARTS):
            compute_part(made[-1].folder, part)

    monkeypatch.setattr(command, "on_cluster", take)
    monkeypatch.setattr(command.time, "sleep", compute)
    monkeypatch.setattr(budget, "runs_folder", str(pairs.parent / "runs"))
    assert main(["sweep", MODEL, str(pairs), "--out", str(out)]) == 0 and not made
    alone = read_sweep(out)
    capsys.readouterr()
    monkeypatch.setattr(budget, "ray_address", "http://head")
    assert main(["sweep", MODEL, str(pairs)]) == 0 and not made  # so light that a job takes longer
    monkeypatch.setattr(budget, "heavy", 0)
    assert main(["sweep", MODEL, str(pairs), "--out", str(out)]) == 0 and len(made) == 1
    assert "has been submitted to Ray\nrow 3 is left out" in capsys.readouterr().err
    found = read_sweep(out)
    assert found.pairs == alone.pairs and found.left_out == alone.left_out
    assert all(torch.equal(found.effects[row], one) for row, one in alone.effects.items())
    monkeypatch.setattr(budget, "runs_store", "s3://bucket/runs")
    assert main(["sweep", MODEL, str(pairs)]) == 0 and len(made) == 1
