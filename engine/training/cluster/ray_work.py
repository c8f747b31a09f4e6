"""Work of many parts on a cluster of Ray, so that the machine that serves pages does not compute them.

A folder among the runs, which all nodes see at the same place, has what is asked and each part that is found. Whoever
waits writes there that it does; the job ends once nobody has for a while, and what is there stays.
"""

from __future__ import annotations

import json
import secrets
import shlex
import sys
import time
from abc import ABC, ABCMeta, abstractmethod
from collections.abc import Iterator, Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from threading import Lock
from typing import Any, ClassVar, TypeVar

from safetensors.torch import save_file
from torch import Tensor

from engine.ages import is_old, note_day
from engine.analysis.survey_file import fit, read_survey
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.collect import collect
from engine.runtime import library
from engine.runtime.shared_work import PARTS, SharedWork
from engine.settings import read_settings
from engine.training.cluster.ray_jobs import RESTARTS, connect, environment, is_unknown
from engine.training.launch.job import FILE, JOB, Job, read_job, write_job
from engine.training.run.atomic import explain_closed_folder, read_json, replace_atomically, write_json

DRIVER = "engine.training.cluster.ray_work_driver"
TASK, ASKED = "task.json", "asked.json"
SAMPLED = 64  # numbers of each weight by which a node knows that it has the same model
KEPT_DAYS = 2  # since somebody waited for it
Value = TypeVar("Value")


class RayWork(SharedWork[Value], ABC):
    """Work whose parts come from the cluster at `address`, or are computed here where it gives none: `trouble` is then
    a sentence with why. A part may be had once `wait` is "": before, `reach` computes it here.

    A kind has a `name`, and says how a part is computed on a node, kept as tensors, read, and joined to those before.
    """

    name: ClassVar[str]

    def __init__(
        self, model: str, checkpoint: Checkpoint, of: str, count: int, first: Value, runs: Path | str, address: str
    ) -> None:
        """`of` says what is asked, and `count` of how many things; `first` is what is found of none."""
        self.model, self.checkpoint, self.address = model, checkpoint, address
        self.runs, self.fits = Path(runs).resolve(), fit(checkpoint, of, SAMPLED)
        about = blake2b(json.dumps([model, self.fits]).encode(), digest_size=16).hexdigest()
        self.folder = self.runs / f".{self.name}s" / about
        self.trouble, self._lost, self._asking = "", 0, Lock()
        super().__init__(self._join_parts(first), count, first)

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Tells a node what it must know besides the model, as JSON has it."""

    @abstractmethod
    def find(self, numbers: range) -> Value:
        """Computes a part here."""

    @abstractmethod
    def read(self, numbers: range, tensors: dict[str, Tensor]) -> Value | None:
        """A part that a node kept; None where it is not whole."""

    @abstractmethod
    def join(self, so_far: Value, part: Value) -> Value: ...

    @staticmethod
    @abstractmethod
    def compute(checkpoint: Checkpoint, told: Mapping[str, Any], numbers: range) -> dict[str, Tensor]:
        """A part on a node, which is `told` what `describe` says."""

    def keep(self, found: Value) -> None:
        """Keeps all that was found where it is looked for without a cluster."""

    def wait(self, part: int) -> str:
        """Says that a part is waited for, and returns what the cluster says of it; empty where there is nothing to wait
        for."""
        with self._asking:
            there = part_file(self.folder, part).is_file() or not numbers_of(part, self.count)
            if part < self.done or self.trouble or there:
                return ""
            try:
                return self._ask()
            except (ValueError, RuntimeError, OSError) as error:
                self.trouble = f"This is computed here, and not on the cluster of Ray: {error}"
                return ""

    @explain_closed_folder()
    def _ask(self) -> str:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_json(self.folder / ASKED, {"heartbeat": time.time()})
        job = read_job(self.folder)
        if job is not None and job.state == "ended" and not job.says:
            return ""  # all parts came meanwhile
        if job is not None and job.state == "ended":
            (self.folder / FILE).unlink(missing_ok=True)  # so that who asks later begins anew
            raise ValueError(job.says)
        if job is not None and job.is_silent(self.folder) and self._is_over(job):
            self._lost, job = self._lost + 1, None
            if self._lost > RESTARTS:
                raise ValueError("its job in Ray was lost again and again; try again once the cluster is well.")
        return (job or self._submit()).says

    def _is_over(self, job: Job) -> bool:
        try:
            return bool(connect(self.address).get_job_status(job.id).is_terminal())
        except RuntimeError as error:
            if not is_unknown(error):
                raise
            return True

    def _submit(self) -> Job:
        noted = note_day(self.runs)
        for other in self.folder.parent.glob(f"*/{ASKED}"):
            if is_old(other.stat().st_mtime, KEPT_DAYS, noted):
                rmtree(other.parent, ignore_errors=True)
        client = connect(self.address)
        job = Job(f"loupe-{self.name}-{secrets.token_hex(8)}", says="has been submitted to Ray")
        task = {"kind": self.name, "model": self.model, "count": self.count, "fits": self.fits}
        write_json(self.folder / TASK, {**task, "told": self.describe()})
        write_job(self.folder, job)
        try:
            client.submit_job(
                submission_id=job.id,
                entrypoint=shlex.join([sys.executable, "-m", DRIVER, str(self.folder)]),
                entrypoint_num_cpus=0,
                runtime_env={"env_vars": environment(self.runs) | {JOB: job.id, "OMP_NUM_THREADS": "1"}},
            )
        except (RuntimeError, OSError):
            (self.folder / FILE).unlink(missing_ok=True)
            raise
        return job

    def _join_parts(self, so_far: Value) -> Iterator[Value]:
        for part in range(PARTS):
            numbers = numbers_of(part, self.count)
            if not numbers:
                break
            tensors = read_survey(part_file(self.folder, part), self.fits)
            found = None if tensors is None else self.read(numbers, tensors)
            so_far = self.join(so_far, self.find(numbers) if found is None else found)
            if numbers.stop == self.count:
                self.keep(so_far)
            yield from [so_far] * len(numbers)


@cache
def kinds() -> dict[str, type[RayWork[Any]]]:
    found: list[Any] = collect("engine.training.cluster.ray_kinds", "KIND", ABCMeta)
    return {kind.name: kind for kind in found}


def find_cluster(model: str, multiplications: float) -> str:
    """Address of the cluster of `LOUPE_RAY_ADDRESS` for work of so many multiplications, weights times tokens; "" where
    none is set, where a job takes longer than the work, and where no node would find the model or the folder of runs.
    """
    if not budget.ray_address or budget.runs_store or multiplications < budget.heavy * 10**6:
        return ""
    try:
        return "" if library.parse_name(model).uploaded else budget.ray_address
    except ValueError:  # a path, which is none of the library's names
        return ""


def part_file(folder: Path, part: int) -> Path:
    return folder / f"part-{part}.safetensors"


def numbers_of(part: int, count: int) -> range:
    """Numbers of the things that are one of PARTS; of the last parts there may be none."""
    size = -(-count // PARTS)
    return range(min(part * size, count), min((part + 1) * size, count))


def compute_part(folder: Path, part: int) -> None:
    """Computes a part on a node, and keeps it in the folder. Raises ValueError where the model there is another one."""
    read_settings()
    task = read_json(folder / TASK)
    checkpoint = library.checkpoint(task["model"])
    if fit(checkpoint, task["fits"]["of"], SAMPLED) != task["fits"]:
        raise ValueError("the nodes must have the weights that the page has, and have others; copy the model there.")
    found = kinds()[task["kind"]].compute(checkpoint, task["told"], numbers_of(part, task["count"]))
    tensors = {name: tensor.cpu().contiguous() for name, tensor in found.items()}
    with replace_atomically(part_file(folder, part)) as partial:
        save_file(tensors, partial, task["fits"])
