"""One folder of runs that several machines, or containers of one, share: who has a run, whatever their clocks say."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.training import Recipe, RunFolder, read_status, train
from engine.training.cluster import ray_driver
from engine.training.launch.processes import waiting_command
from engine.training.launch.queue import Queue
from engine.training.run import journal
from engine.training.run.status import Status, as_written, write_status
from engine.training.trainer import Trainer, Update
from tests.engine.training.waiting import SLEEP, until, wait_in


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path / "run")


def heartbeat(run: RunFolder) -> float:
    status = as_written(run.status)
    return 0.0 if status is None else status.heartbeat


def test_a_run_is_heard_of_while_one_step_takes_long(
    recipe: Recipe, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance, heard = Trainer.advance, list[float]()
    monkeypatch.setattr(journal, "HEARTBEAT", 0.02)

    def slow(self: Trainer, *given: float | None, **named: bool) -> Update:
        while self.step == 6 and len(heard) < 3:
            if (last := heartbeat(run)) not in heard:
                heard.append(last)
        return advance(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Trainer, "advance", slow)
    assert list(train(recipe, run.path))[-1].step == 12 and len(heard) == 3
    status = read_status(run.status)
    assert status is not None and status.state == "finished"


def test_a_run_is_heard_of_while_it_waits_for_its_turn(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    with queue.lock():
        first = queue.take_ticket("first", 1)
    second = wait_in(queue, "second", 1)
    run = RunFolder(tmp_path / "second")
    try:
        write_status(run.status, Status("queued", 5, 9, pid=second.pid, heartbeat=1.0))
        until(lambda: heartbeat(run) > 1.0)
        status = read_status(run.status)
        assert status is not None and (status.state, status.step, status.pid) == ("queued", 5, second.pid)
    finally:
        second.kill()
        second.wait()
        os.close(first.descriptor)


def test_a_process_of_another_container_with_the_same_number_keeps_its_run(recipe: Recipe, run: RunFolder) -> None:
    list(train(recipe, run.path))
    theirs = Status("running", 3, 12, host="another container")
    assert theirs.pid == os.getpid()
    write_status(run.status, theirs)
    with pytest.raises(ValueError, match="must be free, got a run that process .* on another container is training"):
        list(train(recipe, run.path))


def test_a_node_that_may_still_write_is_waited_for_whatever_its_clock_says(
    run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.path.mkdir()
    monkeypatch.setattr(ray_driver, "CUT_OFF", 5.0)
    theirs = Status("running", 3, 12, host="another node", heartbeat=1.0)  # with our number, and an old clock
    write_status(run.status, theirs)
    slept = []

    def sleep(_: float) -> None:
        slept.append(1)
        if len(slept) == 3:
            write_status(run.status, replace(theirs, state="stopped"))

    monkeypatch.setattr(time, "sleep", sleep)
    ray_driver.await_end(run)
    assert len(slept) == 3


CONTAINER = ["unshare", "--user", "--map-root-user", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"]
APART = not shutil.which("unshare") or subprocess.run([*CONTAINER, "true"], capture_output=True).returncode != 0


@pytest.fixture
def training_elsewhere(recipe_path: Path, run: RunFolder) -> Iterator[subprocess.Popen[bytes]]:
    """A training that another host began, with process numbers of its own."""
    recipe_path.write_text(recipe_path.read_text().replace("steps = 12", "steps = 1000000"))
    command = [sys.executable, "-m", "engine", "train", str(recipe_path), "--out", str(run.path), "--quiet"]
    named = ["sh", "-c", 'echo container >/proc/sys/kernel/hostname && exec "$@"', "sh", *command]
    begun = subprocess.Popen([*CONTAINER, *named], cwd=Path(__file__).parents[3])
    yield begun
    begun.kill()
    begun.wait()


@pytest.mark.long
@pytest.mark.skipif(APART, reason="this system makes no namespaces for a user")
def test_two_containers_of_one_machine_share_a_folder_of_runs(
    training_elsewhere: subprocess.Popen[bytes], recipe: Recipe, run: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def state() -> tuple[str, str]:
        status = read_status(run.status)
        return ("", "") if status is None else (status.state, status.host)

    until(lambda: state() == ("running", "container"), 120)
    theirs = json.loads(run.status.read_text())
    assert theirs["pid"] == 1 != os.getpid() and theirs["host"] != socket.gethostname()
    with pytest.raises(ValueError, match="process 1 on container is training; stop that one first"):
        list(train(recipe, run.path))
    monkeypatch.setattr("engine.training.run.status.STALE", 3.0)
    seen = heartbeat(run)
    until(lambda: heartbeat(run) > seen + 2)
    assert state()[0] == "running"
    training_elsewhere.kill()
    until(lambda: state()[0] == "killed")
    longer = replace(recipe, schedule=replace(recipe.schedule, steps=10**6))
    assert next(train(longer, run.path)).step > 5  # from where the other was left


@pytest.mark.long
@pytest.mark.skipif(APART, reason="this system makes no namespaces for a user")
def test_who_waits_in_one_container_has_its_turn_after_another(tmp_path: Path) -> None:
    queue = Queue(tmp_path)
    with queue.lock():
        ours, theirs = queue.take_ticket("ours", 1), queue.take_ticket("theirs", 1)
    (tmp_path / "theirs").mkdir()
    command = waiting_command(tmp_path, tmp_path / "theirs", theirs, SLEEP)
    waiting = subprocess.Popen([*CONTAINER, *command], pass_fds=(theirs.descriptor,))
    try:
        os.close(theirs.descriptor)
        assert queue.names() == ["ours", "theirs"]
        slot = queue.turn(ours.path)
        assert slot is not None and queue.names() == ["theirs"]
        os.close(slot)
        until(lambda: queue.names() == [] and queue.training() == 1)
        waiting.kill()
        waiting.wait()
        until(lambda: queue.training() == 0)
    finally:
        waiting.kill()
        waiting.wait()
