"""Trainings as jobs of a cluster of Ray: it queues them, places them on a node and tries again where a node is lost.

The server only submits. What comes later goes through the run directory, which all nodes see at the same place.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from engine.budget import budget
from engine.places import ROOT
from engine.plurals import count_words
from engine.training.cluster.store import sync_copy
from engine.training.launch.job import JOB, Job, read_job, write_job
from engine.training.launch.launcher import FolderLauncher
from engine.training.launch.machine import Abilities
from engine.training.launch.processes import arguments
from engine.training.recipe.recipe import Recipe
from engine.training.recipe.recipe_file import read_recipe
from engine.training.run import control
from engine.training.run.folder import RunFolder, list_runs
from engine.training.run.latest import Progress, read_progress
from engine.training.run.status import ACTIVE, BEGINS, Status, as_written, read_status, write_status

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

DRIVER = "engine.training.cluster.ray_driver"
PACE = 3.0  # seconds between two looks at a job from here
RESTARTS = 3  # of a run whose job was lost with the cluster's head


class RayJobs(FolderLauncher):
    """A `Launcher` on the cluster whose job API is at `address`, such as http://127.0.0.1:8265; "auto" is one of which
    this machine is a node. `runs` lies where every node finds it under the same path."""

    def __init__(self, runs: Path | str | None = None, address: str = "") -> None:
        super().__init__(runs)
        self.address = address or budget.ray_address

    def _abilities(self, recipe: Recipe) -> Abilities:
        cuda = recipe.machine.device == "cuda"  # that a node has it is Ray's to know
        return Abilities(cuda, bfloat16=cuda, cores=1)

    def free_places(self) -> int:
        states = [status.state for path in list_runs(self.runs) if (status := read_status(RunFolder(path).status))]
        return max(0, budget.max_queued - states.count("queued"))

    def _settle(self, run: RunFolder) -> None:
        """A job that was silent may still be there."""
        job = read_job(run.path)
        if job is None or job.state == "ended":
            return
        client = connect(self.address)
        try:
            if not client.get_job_status(job.id).is_terminal():
                client.stop_job(job.id)
        except RuntimeError as error:
            if not is_unknown(error):
                raise ValueError(f"Ray does not tell of {run.path.name}: {error}; try again.") from None

    def _launch(self, run: RunFolder) -> None:
        self._submit(connect(self.address), run, control.begin_anew(run.path))
        Thread(target=self._follow, args=(run,), daemon=True).start()

    def _submit(self, client: JobSubmissionClient, run: RunFolder, stamp: int = 0) -> None:
        """`stamp` is that of an order which the training may forget."""
        before, recipe = as_written(run.status), read_recipe(run.recipe)
        job = Job(f"loupe-{secrets.token_hex(8)}", says="has been submitted to Ray")
        with run.said.open("a", encoding="utf-8") as said:
            said.write(f"{BEGINS}{time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        step = before.step if before is not None else 0
        write_job(run.path, job)
        write_status(run.status, Status("queued", step, recipe.schedule.steps, job=job.id))
        sync_copy(run.path)
        try:
            client.submit_job(
                submission_id=job.id,
                entrypoint=shlex.join([sys.executable, "-m", DRIVER, *driver_arguments(run, recipe)]),
                entrypoint_num_cpus=0,
                runtime_env={"env_vars": environment(self.runs) | {control.SEEN: str(stamp), JOB: job.id}},
                metadata={"run": run.path.name},
            )
        except (RuntimeError, OSError) as error:
            told = f"Ray at {self.address} did not take the job: {error}; start it again once it does."
            write_job(run.path, Job(job.id, "ended", told))
            raise ValueError(told) from None

    def _follow(self, run: RunFolder) -> None:
        """Submits the run again where its job was lost with the head: once the cluster answers, and knows nothing of
        it, or that it has failed without a last word."""
        restarts = 0
        while (lost := self._is_lost(run)) is not None:
            if not lost:
                time.sleep(PACE)
                continue
            with self.queue.lock(), suppress(ValueError):  # of which the run tells itself
                if not self._is_lost(run):  # somebody has resumed it meanwhile
                    continue
                status, job = as_written(run.status), read_job(run.path)
                if status is not None and control.read_order(run.control).mode == "stop":
                    write_status(run.status, replace(status, state="stopped"))
                elif job is not None and restarts == RESTARTS:
                    told = f"its job in Ray was lost {count_words(1 + RESTARTS, 'time')}; resume it to go on."
                    write_job(run.path, Job(job.id, "ended", told))
                else:
                    restarts += 1
                    self._submit(connect(self.address), run)

    def _is_lost(self, run: RunFolder) -> bool | None:
        """None where there is nothing to wait for any more."""
        try:
            status, job = as_written(run.status), read_job(run.path)
        except OSError:
            return None
        if status is None or job is None or status.state not in ACTIVE or job.state == "ended" or job.id != status.job:
            return None
        if not job.is_silent(run.path):
            return False
        try:
            return bool(connect(self.address).get_job_status(job.id).is_terminal())
        except (ValueError, OSError):
            return False
        except RuntimeError as error:
            return is_unknown(error)


def is_unknown(error: RuntimeError) -> bool:
    """Tells whether the job API answered that there is no such job, as after a head that began anew."""
    return "status code 404" in str(error)


def connect(address: str) -> JobSubmissionClient:
    """Raises ValueError where Ray is not installed, or does not answer."""
    try:
        from ray.job_submission import JobSubmissionClient
    except ImportError:
        raise ValueError(
            "LOUPE_RAY_ADDRESS is set, and Ray is not installed; pip install -r requirements-ray.txt, or unset it."
        ) from None
    try:
        return JobSubmissionClient(address)
    except (ConnectionError, RuntimeError) as error:
        said = str(error).partition("\n")[0].rstrip(".")
        raise ValueError(f"Ray at {address} does not answer ({said}); try again once its head node is up.") from None


def driver_arguments(run: RunFolder, recipe: Recipe) -> list[str]:
    """Folder, cores, GPUs, and the arguments of the engine. The number of threads is always said: a node's cores are
    not those that Ray gave."""
    machine, progress = recipe.machine, read_progress(run.latest) or Progress()
    threads = machine.threads or progress.threads or 1
    cuda = machine.device == "cuda"
    cpus, gpus = (threads, machine.share) if cuda else (threads * machine.share, 0)
    words = [word for word in arguments(run.path) if word != "--background"]
    words += ["--threads", str(threads), "--device", "cuda" if cuda else "cpu"]
    return [str(run.path), f"{cpus:g}", f"{gpus:g}", *words]


def environment(runs: Path) -> dict[str, str]:
    """Variables for every node. Only places: what else is set here may be a secret, and Ray shows a job's variables."""
    places = {"RUNS_COPY" if budget.runs_store else "RUNS": str(runs)}
    places |= {"MODELS": budget.models_folder, "CORPORA": budget.corpora_folder}
    found = {f"LOUPE_{name}": os.path.abspath(place) for name, place in places.items() if place}
    found |= {"LOUPE_RUNS": budget.runs_store} if budget.runs_store else {}
    return found | {"PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "passive"}
