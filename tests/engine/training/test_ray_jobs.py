"""Trainings as jobs of a cluster of Ray: what a run says of its job. Trainings and surveys on a cluster of this test:
nodes that end."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from socket import socket
from typing import Any

import pytest
import torch

from engine.analysis.strongest import readings_of, survey
from engine.budget import budget
from engine.checkpoints import load
from engine.data.stories import story
from engine.inputs.corpus import Corpus
from engine.runtime import library
from engine.training import Recipe, RunFolder, read_recipe, read_status, train
from engine.training.cluster.ray_driver import describe_needs
from engine.training.cluster.ray_jobs import RayJobs, driver_arguments, environment
from engine.training.cluster.ray_kinds.survey import RaySurvey
from engine.training.launch.job import SILENT, Job, read_job, write_job
from engine.training.run.control import stop
from engine.training.run.runs import runs
from engine.training.run.status import Status, write_status
from tests.engine.training.waiting import until


def test_a_run_says_of_its_job_where_it_is_and_lives_as_long_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(tmp_path)
    write_status(run.status, Status("running", 7, 9, pid=1, host="another machine", heartbeat=0.0, job="a"))

    def told(job: Job) -> Status:
        write_job(tmp_path, job)
        status = read_status(run.status)
        assert status is not None
        return status

    running = told(Job("a", "training", "on node n1 of Ray"))
    assert (running.state, running.where) == ("running", "on node n1 of Ray")  # whatever its heartbeat is
    lost = told(Job("a", says="waits for a node with 1 GPU"))
    assert (lost.state, lost.where, lost.step) == ("queued", "waits for a node with 1 GPU", 7)
    monkeypatch.setattr("engine.pulse._pulses", {})  # as a process that has not looked yet
    silent = told(Job("a", "training", heartbeat=time.time() - SILENT - 5))
    assert (silent.state, silent.cause) == ("killed", "no answer") and silent.can_resume
    assert silent.error.startswith("the cluster has not answered for 35 seconds; once it does, the run goes on from ")
    assert told(Job("a", "training", heartbeat=1.0)).state == "running"  # by an old clock, and yet it writes
    assert told(Job("a", "ended", "Ray gave up.")).error == "Ray gave up."
    assert told(Job("another")).state == "killed"
    (tmp_path / "job.json").write_text("{")
    damaged = read_status(run.status)
    assert damaged is not None and damaged.state == "killed" and read_job(tmp_path) is None


def test_a_job_asks_for_what_the_recipe_says_and_tells_no_secret(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder(tmp_path / "run")

    def asked(**machine: Any) -> list[str]:
        return driver_arguments(run, replace(recipe, machine=replace(recipe.machine, **machine)))[1:3]

    assert asked(threads=0) == ["1", "0"]
    assert asked(threads=2, share=0.5) == ["1", "0"]
    assert asked(device="cuda", threads=2, share=0.25) == ["2", "0.25"]
    assert describe_needs(2, 0.25) == "2 CPUs and 0.25 of a GPU" and describe_needs(1, 0) == "1 CPU"
    with pytest.raises(ValueError, match=r"machine\.share must be above 0 and at most 1, got 2"):
        asked(share=2)
    monkeypatch.setenv("LOUPE_DATABASE", "postgresql://loupe:secret@db/loupe")
    assert "secret" not in json.dumps(environment(tmp_path))


def test_a_cluster_that_does_not_answer_is_one_sentence(recipe: Recipe, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Ray (at http://127.0.0.1:9 does not answer|is not installed)"):
        RayJobs(tmp_path / "runs", "http://127.0.0.1:9").start(recipe, "first")


# --- on a cluster ---------------------------------------------------------------------------------------------------

MEMORY = 80_000_000  # bytes of a node's object store, the least that Ray takes
PACE = {  # at which Ray sees that something has ended, with patience for a start
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "10",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def free_port() -> int:
    with socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return int(asked.getsockname()[1])


class Nodes:
    """A cluster on this machine, whose head has no core to train on."""

    def __init__(self) -> None:
        self.dashboard = free_port()
        self.address = f"http://127.0.0.1:{self.dashboard}"
        self.begin()

    def begin(self) -> None:
        from ray.cluster_utils import Cluster

        head = {
            "num_cpus": 0,
            "include_dashboard": True,
            "dashboard_port": self.dashboard,
            "object_store_memory": MEMORY,
        }
        self.cluster = Cluster(initialize_head=True, head_node_args=head)

    def add(self) -> Any:
        return self.cluster.add_node(num_cpus=1, object_store_memory=MEMORY)

    def kill(self, node: Any) -> None:
        self.cluster.remove_node(node, allow_graceful=False)


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    pytest.importorskip("ray", reason="requirements-ray.txt is not installed")
    for name, value in PACE.items():
        monkeypatch.setenv(name, value)
    made = Nodes()
    yield made
    made.cluster.shutdown()


@pytest.mark.long
def test_a_run_outlives_its_node_and_the_head_of_the_cluster(
    nodes: Nodes, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.training.launch.job.SILENT", 8.0)
    monkeypatch.setattr(budget, "max_queued", 2)
    longer = replace(recipe, schedule=replace(recipe.schedule, steps=4000), log=replace(recipe.log, held_out_every=500))
    launcher = RayJobs(tmp_path / "runs", nodes.address)
    folder, run = (made := launcher.start(longer, "first")), RunFolder(made)

    def now() -> Status:
        status = read_status(run.status)
        assert status is not None and status.state not in ("failed", "stopped"), status
        return status

    def reach(state: str, where: str = "", step: int = 0) -> None:
        def there() -> bool:
            seen = now()
            return seen.state == state and where in seen.where and seen.step >= step

        until(there, 120)

    reach("queued", "waits for a node with 1 CPU")
    assert runs(launcher.runs)[0].status.where == now().where
    other = launcher.start(recipe, "second")
    with pytest.raises(ValueError, match="at most 2 trainings may wait"):
        launcher.start(recipe, "third")
    stop(other)
    until(lambda: (seen := read_status(other / "status.json")) is not None and seen.state == "stopped", 60)

    node = nodes.add()
    reach("running", "on node ", step=200)
    nodes.kill(node)
    reach("queued", "waits for a node with 1 CPU", step=200)
    at = now().step
    nodes.add()
    reach("running", "on node ", step=at + 200)

    at = now().step
    nodes.kill(nodes.cluster.head_node)
    reach("killed", step=at)
    assert now().cause == "no answer"
    with pytest.raises(ValueError, match="does not answer"):
        launcher.resume("first")
    for left in [*nodes.cluster.worker_nodes]:
        nodes.kill(left)
    nodes.begin()
    nodes.add()
    reach("finished", step=4000)

    plain = RunFolder(tmp_path / "plain")
    for _ in train(read_recipe(run.recipe), plain.path):
        pass
    ours, theirs = load(folder).model.state_dict(), load(plain.path).model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


@pytest.mark.long
def test_a_survey_outlives_a_node_and_finds_what_is_found_here(nodes: Nodes, tmp_path: Path) -> None:
    checkpoint = library.checkpoint("everyday")
    texts = Corpus("mine.txt", tuple(" ".join(story(7, 9 * n + k) for k in range(9)) for n in range(48)))
    work = RaySurvey("everyday", checkpoint, texts, tmp_path, nodes.address)

    def reach(part: int, says: str = "") -> None:
        until(lambda: (waits := work.wait(part)) == says or (says and says in waits), 120)
        assert not work.trouble

    reach(0, "waits for a node with 1 CPU")
    lost, _ = nodes.add(), nodes.add()
    reach(0)
    nodes.kill(lost)
    assert work.wait(7)
    for part in range(8):
        reach(part)
    *_, found = survey(checkpoint.model, list(readings_of(checkpoint, texts)))
    assert len(list(work.folder.glob("part-*.safetensors"))) == 8
    made = work.reach().tensors
    assert all(torch.equal(made[name].nan_to_num(9), one.nan_to_num(9)) for name, one in found.tensors.items())


@pytest.mark.long
def test_a_survey_for_which_nobody_waits_leaves_the_cluster(nodes: Nodes, tmp_path: Path) -> None:
    checkpoint = library.checkpoint("induction")
    work = RaySurvey("induction", checkpoint, Corpus("mine.txt", ("abcabc",) * 9), tmp_path, nodes.address)
    until(lambda: work.wait(0) == "waits for a node with 1 CPU", 120)
    until(lambda: read_job(work.folder) is None, 60)
    nodes.add()
    until(lambda: not work.wait(0), 120)
    assert not work.trouble and len(work.reach().readings) == 9
