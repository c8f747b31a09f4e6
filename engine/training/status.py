"""status.json: how a run is doing, written by its process and read by anyone."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from engine.plain import build
from engine.training.atomic import read_json, write_json

ACTIVE = ("preparing", "running", "paused")
STALE = 600.0  # seconds without a heartbeat after which a process is taken to be gone; preparing a corpus is shorter


@dataclass(frozen=True)
class Status:
    """`state`: preparing, running, paused, stopped, finished or failed; killed where its process ended without a word.

    `heartbeat` is in seconds since 1970.
    """

    state: str
    step: int = 0
    steps: int = 0
    error: str = ""
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=socket.gethostname)
    heartbeat: float = field(default_factory=time.time)


def write_status(path: Path, status: Status) -> None:
    write_json(path, asdict(status))


def read_status(path: Path) -> Status | None:
    """None where nothing was started yet."""
    data = read_json(path)
    if data is None:
        return None
    status: Status = build(Status, data)
    return replace(status, state="killed") if status.state in ACTIVE and not alive(status) else status


def alive(status: Status) -> bool:
    if time.time() - status.heartbeat > STALE:  # its number may be another process's by now
        return False
    if status.host != socket.gethostname():
        return True
    try:
        os.kill(status.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        return True
    return not _zombie(status.pid)


def _zombie(pid: int) -> bool:
    """Ended, but its parent has not looked yet. Known only where there is a /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError, IndexError):
        return False
