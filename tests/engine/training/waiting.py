"""Processes that wait in a queue of trainings, with something light in the place of the training."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from engine.training.launch.processes import waiting_command
from engine.training.launch.queue import Queue

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def until(happened: Callable[[], object], seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def wait_in(queue: Queue, name: str, slots: int, command: list[str] | None = None) -> subprocess.Popen[bytes]:
    """A process that waits with the ticket it is given, as the launcher starts one."""
    folder = queue.folder.parent / name
    folder.mkdir(exist_ok=True)
    with queue.lock():
        ticket = queue.take_ticket(name, slots)
    process = subprocess.Popen(
        waiting_command(queue.folder.parent, folder, ticket, command or SLEEP), pass_fds=(ticket.descriptor,)
    )
    os.close(ticket.descriptor)
    return process


def command_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
