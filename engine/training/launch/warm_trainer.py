"""A trainer process that is ready before a run is started: all modules imported, waiting for the run to train.

Importing PyTorch and what its optimisers need takes some seconds, and a person who presses Play would wait for them. So
the server holds one process that has done so in a thread of low priority. The launcher hands it a run through a socket;
from then on it is the process of that run, in a session of its own, and outlives the server. Until then it ends with
the server, whose end of the socket closes however the server ends.

This file is also the script of that process, so it imports the standard library only at first.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread, Timer

PATIENCE = 10.0  # seconds until the process must have answered
PAUSE = 5.0  # seconds between a hand-over and the start of the next process: the first steps of the run have the cores
BACKGROUND = 5  # added to the niceness of the server
PART = 2**16  # bytes of the message that are received at once
DESCRIPTORS = 3


class WarmTrainer:
    """Holds at most one process. Safe to use from several threads.

    It holds none before it is `enabled`: tests and the command line start trainings without one.
    """

    def __init__(self, enabled: bool = False, pause: float = PAUSE) -> None:
        self.enabled, self.pause = enabled, pause
        self.process: subprocess.Popen[bytes] | None = None
        self._link: socket.socket | None = None
        self._lock = Lock()

    def keep(self) -> None:
        """Starts a process unless there is one."""
        from engine.places import ROOT

        with self._lock:
            if not self.enabled or (self.process is not None and self.process.poll() is None):
                return
            self._drop()
            ours, theirs = socket.socketpair()
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", __file__, str(ROOT), str(theirs.fileno())],
                    cwd=ROOT,
                    env={**os.environ, "OMP_WAIT_POLICY": "passive"},
                    pass_fds=(theirs.fileno(),),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            self._link = ours

    def hand_over(
        self, arguments: Sequence[str], environment: Mapping[str, str], turn: Sequence[str], descriptors: Sequence[int]
    ) -> subprocess.Popen[bytes] | None:
        """The process, which from now on runs `python -m engine` with `arguments` once it is its turn; None where there
        is no process, or it does not answer.

        `turn` is the folder of all runs, that of this run, and the path of its ticket. `descriptors` are its ticket's,
        that of a pipe which is closed when the run may begin, and its log's.
        """
        with self._lock:
            if self.process is None or self._link is None:
                return None
            message = json.dumps({"arguments": [*arguments], "environment": {**environment}, "turn": [*turn]})
            try:
                self._link.settimeout(PATIENCE)
                socket.send_fds(self._link, [message.encode() + b"\n"], list(descriptors))
                answered = self._link.recv(1)
            except OSError:  # it has ended, or does not answer
                answered = b""
            process = self.process if answered else None
            self._drop(end=process is None)
        later = Timer(self.pause, self.keep)
        later.daemon = True
        later.start()
        return process

    def close(self) -> None:
        """Ends the process that waits, and starts no other."""
        with self._lock:
            self.enabled = False
            self._drop()

    def _drop(self, end: bool = True) -> None:
        if self._link is not None:
            self._link.close()
        if self.process is not None and end:
            self.process.kill()
            self.process.wait()
        self.process = self._link = None


shared = WarmTrainer()  # of this server, which enables it


def main(root: str, descriptor: str) -> None:
    """Waits for a run and trains it; ends where the server does before. The packages lie in `root`."""
    sys.path.insert(0, root)
    gc.disable()  # of what is imported nothing becomes garbage
    imports = Thread(target=import_trainer, daemon=True)
    imports.start()
    with socket.socket(fileno=int(descriptor)) as link:
        message, descriptors, _, _ = socket.recv_fds(link, PART, DESCRIPTORS)
        while message and not message.endswith(b"\n"):
            part = link.recv(PART)
            message = message + part if part else b""
        if not message:
            os._exit(0)  # also where the thread is still importing
        os.setsid()
        link.send(b"\n")
    _, starter, log = descriptors  # the first is the ticket's, whose lock it holds as long as this process lives
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
    order = json.loads(message)
    os.environ |= order["environment"]
    raise_priority(imports)
    imports.join()
    gc.freeze()
    gc.enable()

    from engine.cli.main import main as run_command
    from engine.training.launch.turn import wait_for_turn

    runs, folder, ticket = order["turn"]
    wait_for_turn(runs, folder, ticket, starter)
    raise SystemExit(run_command(order["arguments"]))


def raise_priority(imports: Thread) -> None:
    """Gives a thread that still imports the priority of this one, where the system lets this process do so."""
    if sys.platform == "linux" and imports.native_id is not None:
        with suppress(PermissionError, ProcessLookupError):  # without privileges; or it has ended
            os.setpriority(os.PRIO_PROCESS, imports.native_id, os.getpriority(os.PRIO_PROCESS, 0))


def import_trainer() -> None:
    """Imports what a training needs up to its first update, in this thread, at a low priority."""
    if sys.platform == "linux":  # where it is the priority of this thread alone
        os.nice(BACKGROUND)

    import torch

    import engine.cli.main  # noqa: F401
    from engine.training.objectives import objectives

    objectives()
    weight = torch.nn.Parameter(torch.zeros(1))
    optimiser = torch.optim.AdamW([weight], fused=True)  # the first one imports PyTorch's compiler
    weight.grad = torch.zeros(1)
    optimiser.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
