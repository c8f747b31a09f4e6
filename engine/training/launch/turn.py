"""A process that waits for its turn and then becomes the training: the same process, with the lock of its slot.

It is started as a file, by launch/processes.py: waiting must not cost what importing PyTorch does, which the packages
bring along. So of these only the files that it needs are imported.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType

POLL = 0.2  # seconds between two looks at the queue
HEARTBEAT = 1.0  # seconds between two writings of status.json
STOPPED = 130  # the exit status of a training that did not come to its end


def main(runs: str, folder: str, ticket: str, starter: str, *command: str) -> None:
    """`starter` is the descriptor of a pipe that is closed when all is ready, or empty; `command` is the training."""
    slot = wait_for_turn(runs, folder, ticket, int(starter) if starter else None)
    os.set_inheritable(slot, True)
    os.execv(command[0], command)


def wait_for_turn(runs: str, folder: str, ticket: str, starter: int | None) -> int:
    """Descriptor of the slot that this process has from now on, and frees with its end, or as Queue.give_way does.

    Ends the process with STOPPED where the run is cancelled before it is its turn.
    """
    from engine.training.launch.queue import SLOT, Queue

    if starter is not None:
        os.read(starter, 1)  # until it is closed, also by the starter's end
        os.close(starter)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    queue, told = Queue(runs), time.monotonic()
    try:
        while True:
            if time.monotonic() - told > HEARTBEAT:
                say(Path(folder), "queued")
                told = time.monotonic()
            if is_cancelled(Path(folder)):
                raise KeyboardInterrupt
            if (slot := queue.turn(Path(ticket))) is not None:
                break
            time.sleep(POLL)
        os.environ[SLOT] = str(slot)
        say(Path(folder), "preparing")
    except KeyboardInterrupt:
        Path(ticket).unlink(missing_ok=True)
        say(Path(folder), "stopped")
        raise SystemExit(STOPPED) from None
    return slot


def is_cancelled(folder: Path) -> bool:
    """Tells whether control.json asks for a stop; what else it says, the training reads."""
    from engine.training.run.atomic import read_json

    try:
        order = read_json(folder / "control.json")
    except ValueError:
        return False
    return isinstance(order, dict) and order.get("mode") == "stop"


def say(folder: Path, state: str) -> None:
    """Writes status.json, unless the run was taken away meanwhile."""
    from engine.training.run.status import as_written, write_status

    status = as_written(folder / "status.json")
    if status is not None:
        write_status(folder / "status.json", replace(status, state=state, heartbeat=time.time()))


def without_the_packages(root: str) -> None:
    """Stands in for the packages' own __init__, so that single files of those in `root` can be imported."""
    for name in ("engine", "engine.training"):
        package = ModuleType(name)
        package.__path__ = [str(Path(root, *name.split(".")))]
        sys.modules[name] = package


if __name__ == "__main__":
    without_the_packages(sys.argv[1])
    main(*sys.argv[2:])
