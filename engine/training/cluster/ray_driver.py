"""The job of one training in a cluster of Ray: asks for a node, waits, and writes in job.json what it waits for.

It is started by Ray, beside its head, as `python -m`; the training is a task of it, in a process on some node. Where
that node is lost, Ray runs the task again on another, and the run directory takes it on from its last state.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.plurals import count_words
from engine.pulse import listen
from engine.settings import read_settings
from engine.training.cluster.store import kept_alike, sync_copy
from engine.training.launch.job import JOB, Job, write_job
from engine.training.run.control import read_order
from engine.training.run.folder import RunFolder
from engine.training.run.status import alive, as_written, write_status

POLL = 2.0  # seconds between two looks at the task
RETRIES = 3  # of a node or process that is lost
CUT_OFF = 90.0  # seconds: a node without its head ends its processes after 60
GOES_ON = ("preparing", "running", "paused")


def main(folder: str, cpus: str, gpus: str, *arguments: str) -> None:
    import ray
    from ray.exceptions import OutOfMemoryError, RayError, TaskCancelledError

    run, needs = RunFolder(folder), describe_needs(float(cpus), float(gpus))
    say(run, "waiting", f"waits for a node with {needs}")
    ray.init(address="auto", log_to_driver=False)
    task: Any = ray.remote(train_here).options(num_cpus=float(cpus), num_gpus=float(gpus), max_retries=RETRIES)
    training = task.remote(folder, arguments)
    while not ray.wait([training], timeout=POLL)[0]:
        node = node_of(training.task_id().hex())
        if node:
            say(run, "training", f"on node {node} of Ray")
            continue
        say(run, "waiting", f"waits for a node with {needs}")
        if read_order(run.control).mode == "stop":
            ray.cancel(training)
    told = ""
    try:
        ray.get(training)
    except TaskCancelledError:
        if (status := as_written(run.status)) is not None:
            write_status(run.status, replace(status, state="stopped", heartbeat=time.time()))
    except OutOfMemoryError:
        told = "Ray ended the training for lack of memory; lower batch.size or the model's size, or resume it."
    except RayError as error:
        told = f"Ray gave up after {1 + RETRIES} tries: {str(error).strip().splitlines()[0][:300]} Resume it to go on."
    say(run, "ended", told)


def say(run: RunFolder, state: Any, says: str) -> None:
    with suppress(FileNotFoundError):  # the run was taken away
        write_job(run.path, Job(os.environ[JOB], state, says))


def describe_needs(cpus: float, gpus: float) -> str:
    needs = [(float(count), name) for count, name in ((cpus, "CPU"), (gpus, "GPU")) if count]
    return " and ".join(
        count_words(int(count), name) if count.is_integer() else f"{count:g} of a {name}" for count, name in needs
    )


def node_of(task: str) -> str:
    """Name of the node on which a task runs; empty while it waits."""
    import ray
    from ray.util.state import list_tasks
    from ray.util.state.exception import RayStateApiException

    try:
        found = [one.node_id for one in list_tasks(filters=[("task_id", "=", task)]) if one.state == "RUNNING"]
    except RayStateApiException:
        return ""
    names = {node["NodeID"]: node["NodeName"] for node in ray.nodes() if node["Alive"]}
    return next((names[one] for one in found if one in names), "")


def train_here(folder: str, arguments: tuple[str, ...]) -> int:
    """Trains on the node, in this process, so that it ends with it."""
    from engine.cli.main import main as run_command

    read_settings()
    run = RunFolder(folder)
    sync_copy(run.path)
    await_end(run)
    log = os.open(run.said, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)
    return run_command(arguments)


def await_end(run: RunFolder) -> None:
    """Waits until the process of an earlier try cannot write any more: one whose node was only cut off still may."""
    here = socket.gethostname()
    while (there := as_written(run.status)) is not None and there.state in GOES_ON:
        if there.host == here and (there.pid == os.getpid() or not alive(there, run.status)):
            return
        if there.host != here and listen(run.status, there.heartbeat).observed_seconds > CUT_OFF:
            return
        time.sleep(POLL)


if __name__ == "__main__":
    read_settings()
    with kept_alike(Path(sys.argv[1])):
        main(*sys.argv[1:])
