"""status.json: how a run is doing, written by its process and read by anyone.

Standard library only: who waits for a turn to train imports this before PyTorch.
"""

from __future__ import annotations

import math
import os
import socket
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from engine.model.from_dict import build_from_valid
from engine.plurals import count_words
from engine.pulse import listen
from engine.training.launch import process
from engine.training.launch.job import FILE, Job, read_job
from engine.training.run.atomic import read_json, write_json

ACTIVE = ("queued", "preparing", "running", "paused")
RESUMABLE = ("stopped", "killed", "failed")
STATES = (*ACTIVE, *RESUMABLE, "finished")
DAMAGED = "killed"  # state of a run whose status cannot be read
# Seconds without a heartbeat, of one each second, after which a process is taken to be gone where nobody can look: to
# load PyTorch from slow storage takes long, and what another machine renamed may be seen a minute later.
STALE = 120.0
SURE = 3.0  # seconds of silence after which a process is taken to be gone whose clock says that it is
POLL = 0.2  # seconds between two looks at such a process
BEGINS = "--- "  # of the line in log.txt that tells of a start; behind it stands what that start said
SAID = 4096  # bytes of the end of log.txt that are looked at


@dataclass(frozen=True)
class RunProgress:
    """`state`: queued (waits for its turn), preparing, running, paused, stopped, finished, failed, or killed where its
    process ended without a word. `error` is a sentence with what to do, `cause` its kind in a word or two: "out of
    memory", "not a number", "disk full", "time limit", "killed", "no answer" (of a cluster), "gave way" (paused, to one
    that waited); empty where there is no more to say."""

    state: str
    step: int = 0
    steps: int = 0
    error: str = ""
    cause: str = ""


@dataclass(frozen=True)
class ProcessRecord:
    """Process that trains. `heartbeat` is in seconds since 1970 by the clock of `host`, 0 where it does not read;
    `started` and `oom_kills` are of launch/process.py, the latter as it was when this was written."""

    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)
    heartbeat: float = field(default_factory=time.time)
    started: str | None = None
    oom_kills: int | None = None  # not known of a file that does not say


@dataclass(frozen=True)
class Status(ProcessRecord, RunProgress):
    """`notice` says what of control.json or of this file is ignored, since it cannot be read.
    `chosen` says in sentences how the machine is used. `peak_memory` are the bytes that the process held at most, those
    of a GPU where it trains there; 0: the system does not say. `job` is that of the cluster that the run was given to,
    which says `where` it is or what it waits for; both are empty for a process that was started on its own machine.
    """

    chosen: tuple[str, ...] = ()
    notice: str = ""
    peak_memory: int = 0
    job: str = ""
    where: str = ""

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError(f"state must be one of {', '.join(STATES)}, got {self.state!r:.80}.")
        if self.step < 0 or self.steps < 0 or not 0 < self.pid < 2**31 or not math.isfinite(self.heartbeat):
            raise ValueError("step and steps must be at least 0, pid a process, and heartbeat a time.")
        if self.started is None:
            object.__setattr__(self, "started", process.start_time(self.pid))

    @property
    def can_resume(self) -> bool:
        """Tells whether it ended before it was finished, and can go on from where it is."""
        return self.state in RESUMABLE


def write_status(path: Path, status: Status) -> None:
    write_json(path, asdict(replace(status, oom_kills=process.oom_kills())))


def as_written(path: Path) -> Status | None:
    """Status that its process wrote last, without what of it cannot be read. None where nothing was started yet."""
    try:
        data = read_json(path)
    except ValueError as error:
        return damaged_status(f"{path.name} is ignored: {error}")
    if data is None:
        return None
    status, fault = build_from_valid(Status, data, {"state": DAMAGED, "started": "", "heartbeat": 0.0})
    if fault and status.state == DAMAGED:
        return damaged_status(f"{path.name} is ignored: {fault}")
    return replace(status, notice=f"{path.name} is ignored in part: {fault}.") if fault else status


def damaged_status(why: str) -> Status:
    """Status of a run of which nothing is known, and which can be resumed."""
    told = f"{why}; resume the training to go on from its newest saved step."
    return Status(DAMAGED, cause="damaged", error=told, started="")


def read_status(path: Path) -> Status | None:
    """Reads the status as `as_written` does, but of a process that ended without a word it says so, and why as far as
    that is known."""
    status = as_written(path)
    if status is None or status.state not in ACTIVE:
        return status
    if status.job:
        return as_job(status, read_job(path.parent), path.parent)
    return status if alive(status, path) else died(status, path.parent)


def watch_status(path: Path) -> Status | None:
    """Reads the status as `read_status` does, for who is about to take the run: where only the clock of another machine
    says that its process is gone, it looks for a moment whether that writes."""
    while True:
        written, found = as_written(path), read_status(path)
        if written is None or found is None or written.state not in ACTIVE or found.state in ACTIVE or written.job:
            return found
        if written.host == socket.gethostname() or listen(path, written.heartbeat).observed_seconds > SURE:
            return found
        time.sleep(POLL)


def as_job(status: Status, job: Job | None, folder: Path) -> Status:
    """Status of a run that a cluster has: its process may be on any machine, so that the job tells whether it lives."""
    if job is None or job.id != status.job:
        return died(replace(status, host=""), folder)
    if job.is_silent(folder):
        silence = count_words(round(listen(folder / FILE, job.heartbeat).silence), "second")
        told = (
            f"the cluster has not answered for {silence}; once it does, the run goes on from step "
            f"{status.step:,}: by itself where the server that started it is up, else when it is resumed."
        )
        return replace(status, state="killed", cause="no answer", error=told)
    if job.state == "ended":
        lost = died(replace(status, host=""), folder)
        return replace(lost, error=job.says or lost.error)
    if job.state == "waiting":
        return replace(status, state="queued", where=job.says)
    return replace(status, where=job.says)


def alive(writer: ProcessRecord, file: Path) -> bool:
    """Tells whether the process that wrote its status to `file` is there, as far as can be known from here."""
    fresh = writer.heartbeat > 0 and listen(file, writer.heartbeat).silence <= STALE
    if writer.host != socket.gethostname():
        return fresh
    if writer.started and process.says_when_started():
        return process.start_time(writer.pid) == writer.started
    zombie = process.says_when_started() and not process.start_time(writer.pid)
    return fresh and process.exists(writer.pid) and not zombie


def died(status: Status, folder: Path) -> Status:
    """Status of a run in `folder` whose process has ended and left `status`."""
    again = f"resume it to go on from step {status.step:,}" if status.step else "start it again"
    before = status.oom_kills
    if status.host == socket.gethostname() and before is not None and process.oom_kills() > before:
        told = f"the system ended the training for lack of memory; lower batch.size or the model's size, or {again}."
        return replace(status, state="killed", cause="out of memory", error=told)
    line = last_said(folder / "log.txt")
    where = "its process ended while it waited for its turn" if status.state == "queued" else "its process ended"
    told = f"{where} without a word; {again}." if not line else f"{where}, and said last: {line}"
    return replace(status, state="killed", cause="killed", error=told)


def last_said(log: Path) -> str:
    """The last line that a training wrote to its log since it was started; empty where it wrote none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - SAID))
            lines = file.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return "" if last.startswith(BEGINS) else last[-500:]
