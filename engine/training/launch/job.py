"""job.json: what the cluster that a run was given to says of it; written by whoever submits it, from then on by the
job's own driver every other second, and read by anyone.

Standard library only: who waits for a turn to train imports this before PyTorch.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from engine.model.from_dict import build_from_valid
from engine.pulse import listen
from engine.training.run.atomic import read_json, write_json

JOB = "LOUPE_JOB"  # the variable by which a training knows of which job it is
FILE = "job.json"
SILENT = 30.0  # seconds without a word after which the cluster is taken to be gone


@dataclass(frozen=True)
class Job:
    """`state`: waiting (for a node), training, or ended. `says` is where it is, or what it waits for, as "waits for a
    node with 1 CPU"; once it has ended, a sentence with why, empty where the run itself says so. `heartbeat` is in
    seconds since 1970, by the clock of who wrote it."""

    id: str
    state: Literal["waiting", "training", "ended"] = "waiting"
    says: str = ""
    heartbeat: float = field(default_factory=time.time)

    def is_silent(self, folder: Path) -> bool:
        """Tells whether nobody writes it to `folder` any more, though it has not ended."""
        return self.state != "ended" and listen(folder / FILE, self.heartbeat).silence > SILENT


def write_job(folder: Path, job: Job) -> None:
    write_json(folder / FILE, asdict(job))


def read_job(folder: Path) -> Job | None:
    """None where the run was given to no cluster, and where the file does not read."""
    try:
        data = read_json(folder / FILE)
    except ValueError:
        return None
    return None if data is None else build_from_valid(Job, data, {"id": ""})[0]
