"""A trainer process that is ready before a run is started: all modules imported, waiting for the run to train.

Importing PyTorch and what its optimisers need takes some seconds, and a person who presses Play would wait for them. So
the server holds one process that has done so in a thread of low priority. The launcher hands it a run through a socket;
from then on it is the process of that run, in a session of its own, and outlives the server. Until then it ends with
the server, whose end of the socket closes however the server ends.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from threading import Lock, Timer

from engine.places import ROOT

PATIENCE = 10.0  # seconds until the process must have answered
PAUSE = 5.0  # seconds between a hand-over and the start of the next process: the first steps of the run have the cores
SCRIPT = ROOT / "engine" / "cli" / "waiting.py"


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
        with self._lock:
            if not self.enabled or (self.process is not None and self.process.poll() is None):
                return
            self._drop()
            ours, theirs = socket.socketpair()
            with theirs:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", str(SCRIPT), str(ROOT), str(theirs.fileno())],
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
