"""Surveys of a model over many texts (engine/analysis/strongest.py) on a cluster of Ray, so that the machine that
serves pages does not compute them.

A folder among the runs, which all nodes see at the same place, has what is asked and each part that is found. Whoever
waits writes there that it does; the job ends once nobody has for a while, and what is there stays.
"""

from __future__ import annotations

import json
import secrets
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree
from threading import Lock

from safetensors.torch import save_file

from engine.ages import is_old, note_day
from engine.analysis.strongest import (
    CORPUS_LENGTH,
    CORPUS_TEXTS,
    LENGTH,
    Survey,
    keep_survey,
    read_texts,
    readings_of,
    survey,
)
from engine.analysis.survey_file import fit, read_survey
from engine.budget import budget
from engine.checkpoints import Checkpoint
from engine.inputs.corpus import Corpus
from engine.inputs.readers import Reading
from engine.runtime import library
from engine.runtime.shared_work import PARTS, SharedWork
from engine.settings import read_settings
from engine.training.cluster.ray_jobs import RESTARTS, connect, environment, is_unknown
from engine.training.launch.job import FILE, JOB, Job, read_job, write_job
from engine.training.run.atomic import explain_closed_folder, read_json, replace_atomically, write_json

DRIVER = "engine.training.cluster.ray_survey_driver"
SURVEYS = ".surveys"  # folder among the runs
TASK, ASKED = "task.json", "asked.json"
SAMPLED = 64  # numbers of each weight by which a node knows that it has the same model
KEPT_DAYS = 2  # since somebody waited for it


class RaySurvey(SharedWork[Survey]):
    """A survey whose parts come from the cluster at `address`, or are computed here where it gives none: `trouble` is
    then a sentence with why. A part may be had once `wait` is "": before, `reach` computes it here."""

    def __init__(
        self, model: str, checkpoint: Checkpoint, corpus: Corpus | None, runs: Path | str, address: str
    ) -> None:
        self.model, self.checkpoint, self.corpus, self.address = model, checkpoint, corpus, address
        self.readings, self.runs = list(readings_of(checkpoint, corpus)), Path(runs).resolve()
        self.fits = fit(checkpoint, read_texts(corpus), SAMPLED)
        about = blake2b(json.dumps([model, self.fits]).encode(), digest_size=16).hexdigest()
        self.folder = self.runs / SURVEYS / about
        self.trouble, self._lost, self._asking = "", 0, Lock()
        super().__init__(self._join_parts(), len(self.readings), Survey())

    def wait(self, part: int) -> str:
        """Says that a part is waited for, and returns what the cluster says of it; empty where there is nothing to wait
        for."""
        with self._asking:
            there = part_file(self.folder, part).is_file() or not numbers_of(part, len(self.readings))
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
        for other in (self.runs / SURVEYS).glob(f"*/{ASKED}"):
            if is_old(other.stat().st_mtime, KEPT_DAYS, noted):
                rmtree(other.parent, ignore_errors=True)
        client = connect(self.address)
        job = Job(f"loupe-survey-{secrets.token_hex(8)}", says="has been submitted to Ray")
        texts = None if self.corpus is None else self.corpus.texts[:CORPUS_TEXTS]
        count = len(self.readings)
        write_json(self.folder / TASK, {"model": self.model, "texts": texts, "count": count, "fits": self.fits})
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

    def _join_parts(self) -> Iterator[Survey]:
        so_far = Survey()
        for part in range(PARTS):
            numbers = numbers_of(part, len(self.readings))
            if not numbers:
                break
            tensors = read_survey(part_file(self.folder, part), self.fits)
            share = self.readings[numbers.start : numbers.stop]
            found = None if tensors is None else Survey.from_tensors(share, tensors)
            so_far = so_far.join(found or find_part(self.checkpoint, self.readings, numbers))
            if numbers.stop == len(self.readings):
                keep_survey(self.checkpoint, self.corpus, so_far)
            yield from [so_far] * len(numbers)


def on_cluster(model: str, checkpoint: Checkpoint, corpus: Corpus | None, count: int) -> RaySurvey | None:
    """The survey of a model of the library on the cluster of `LOUPE_RAY_ADDRESS`; None where none is set, where it is
    so light that a job takes longer, and where no node would find the model or the folder of runs."""
    if not budget.ray_address or budget.runs_store or library.parse_name(model).uploaded:
        return None
    tokens = count * (LENGTH if corpus is None else CORPUS_LENGTH)
    if tokens * sum(weight.numel() for weight in checkpoint.model.parameters()) < budget.heavy * 10**6:
        return None
    return RaySurvey(model, checkpoint, corpus, budget.runs_folder, budget.ray_address)


def part_file(folder: Path, part: int) -> Path:
    return folder / f"part-{part}.safetensors"


def numbers_of(part: int, count: int) -> range:
    """Numbers of the texts that are read as one of PARTS; of the last parts there may be none."""
    size = -(-count // PARTS)
    return range(min(part * size, count), min((part + 1) * size, count))


def find_part(checkpoint: Checkpoint, readings: Sequence[Reading], numbers: range) -> Survey:
    *_, found = survey(checkpoint.model, readings[numbers.start : numbers.stop], numbers.start)
    return found


def compute_part(folder: Path, part: int) -> None:
    """Computes a part on a node, and keeps it in the folder. Raises ValueError where the model there is another one."""
    read_settings()
    task = read_json(folder / TASK)
    checkpoint = library.checkpoint(task["model"])
    if fit(checkpoint, task["fits"]["of"], SAMPLED) != task["fits"]:
        raise ValueError("the nodes must have the weights that the page has, and have others; copy the model there.")
    corpus = None if task["texts"] is None else Corpus("", tuple(task["texts"]))
    readings = list(readings_of(checkpoint, corpus))
    found = find_part(checkpoint, readings, numbers_of(part, len(readings)))
    tensors = {name: tensor.contiguous() for name, tensor in found.tensors.items()}
    with replace_atomically(part_file(folder, part)) as partial:
        save_file(tensors, partial, task["fits"])
