"""Surveys on a cluster of Ray: what is asked, found and stopped goes through a folder, and is what is computed here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from engine.analysis import strongest
from engine.analysis.strongest import Survey, readings_of, survey
from engine.budget import budget
from engine.inputs.corpus import Corpus
from engine.runtime import library
from engine.training.cluster import ray_work, ray_work_driver
from engine.training.cluster.ray_kinds import survey as ray_survey
from engine.training.cluster.ray_kinds.survey import RaySurvey, on_cluster
from engine.training.cluster.ray_work import TASK, compute_part
from engine.training.cluster.ray_work_driver import follow
from engine.training.launch.job import JOB, Job, read_job, write_job
from engine.training.run.atomic import write_json

MODEL = "induction"
TEXTS = Corpus("mine.txt", tuple("abcdefghijklmnop"[n : n + 5] * 2 for n in range(11)))  # six parts, the last with one


class Client:
    """Takes jobs, and runs none."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, Any]] = []

    def submit_job(self, **job: Any) -> None:
        self.jobs.append(job)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Client:
    made = Client()
    monkeypatch.setattr(ray_work, "connect", lambda address: made)
    monkeypatch.setenv(JOB, "a")
    return made


def asked(runs: Path, address: str = "http://head") -> RaySurvey:
    return RaySurvey(MODEL, library.checkpoint(MODEL), TEXTS, runs, address)


def computed_here() -> Survey:
    checkpoint = library.checkpoint(MODEL)
    *_, found = survey(checkpoint.model, list(readings_of(checkpoint, TEXTS)))
    return found


def same(one: Survey, other: Survey) -> bool:
    pairs = [(tensor, other.tensors[name]) for name, tensor in one.tensors.items()]
    return one.readings == other.readings and all(torch.equal(a.nan_to_num(9), b.nan_to_num(9)) for a, b in pairs)


def test_the_parts_that_nodes_find_are_those_of_here_and_stay_when_nobody_waits_any_more(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = asked(tmp_path)
    assert work.wait(0) == "has been submitted to Ray" and work.wait(0) and len(client.jobs) == 1
    assert str(work.folder) in client.jobs[0]["entrypoint"] and not asked(tmp_path).wait(7)  # which has no text
    said = []

    def compute_one(left: Sequence[int]) -> Sequence[int]:
        compute_part(work.folder, left[0])
        said.append(work.wait(5))
        return left[1:]

    assert follow(work.folder, range(6), compute_one, lambda left: {"n2", "n1"} if left[0] == 2 else set())
    assert said[1] == "waits for a node with 1 CPU" and said[2:] == ["is computed on n1, n2 of Ray"] * 3 + [""]
    monkeypatch.setattr(ray_survey, "find_part", lambda *_: pytest.fail("it is computed here"))
    assert [len(step().readings) for step in work.steps] == [2, 4, 6, 8, 10, 11, 11, 11]
    assert same(work.results, computed_here()) and len(client.jobs) == 1


def test_a_stop_ends_the_job_and_what_is_missing_is_asked_for_again(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = asked(tmp_path)
    work.wait(0)
    monkeypatch.setattr(ray_work_driver, "UNASKED", 0.0)

    def compute_one(left: Sequence[int]) -> Sequence[int]:
        compute_part(work.folder, left[0])
        return left[1:]

    assert not follow(work.folder, range(6), compute_one, lambda left: ["n1"])
    (work.folder / "job.json").unlink()
    assert not work.wait(1) and work.wait(2) and len(client.jobs) == 2  # two looks until it is sure
    assert len(asked(tmp_path).reach(2).readings) == 4  # of another session as well


def test_what_the_cluster_does_not_compute_is_computed_here_and_said(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = asked(tmp_path)
    work.wait(0)
    compute_part(work.folder, 0)
    task = ray_work.read_json(work.folder / TASK)
    write_json(work.folder / TASK, task | {"fits": task["fits"] | {"weights": "others"}})
    with pytest.raises(ValueError, match="the nodes must have the weights that the page has"):
        compute_part(work.folder, 1)
    write_job(work.folder, Job("a", "ended", "Ray gave up a part: no room."))
    assert not work.wait(1) and work.trouble.endswith("Ray: Ray gave up a part: no room.")
    assert read_job(work.folder) is None and same(work.reach(), computed_here())

    monkeypatch.undo()
    alone = asked(tmp_path / "runs", "http://127.0.0.1:9")
    assert not alone.wait(0) and ("does not answer" in alone.trouble or "is not installed" in alone.trouble)
    assert same(alone.reach(), computed_here())


def test_only_what_takes_longer_than_a_job_goes_to_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken(model: str, count: int) -> bool:
        return on_cluster(model, library.checkpoint(model), None, count) is not None

    assert not taken("everyday", 10_000)
    monkeypatch.setattr(budget, "ray_address", "http://head")
    assert taken("everyday", 200) and not taken("everyday", strongest.TEXTS) and not taken("induction", 200)
    monkeypatch.setattr(budget, "runs_store", "s3://bucket/runs")
    assert not taken("everyday", 200)
