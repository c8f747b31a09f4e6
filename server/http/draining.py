"""How a server ends: it takes nobody new, lets what runs come to its end, and then closes.

Trainings are processes of their own, and go on.
"""

from __future__ import annotations

import asyncio
import signal
from time import monotonic
from types import FrameType

import uvicorn

from server.http.logs import log
from server.http.readiness import readiness
from server.http.streamlit_patches.observed_runs import runs
from server.http.workers import HandedServer
from server.settings import DRAIN_SECONDS

PAUSE = 0.05  # seconds until it looks again whether a script runs
CLOSES = 5  # seconds for connections to close, once no script runs


class DrainingServer(uvicorn.Server):
    """Drains once it is told to end by SIGTERM. A second signal, or Ctrl+C, ends it at once."""

    _drain: asyncio.Task[None] | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig != signal.SIGTERM or readiness.draining:
            return super().handle_exit(sig, frame)
        readiness.draining = True
        log.info("draining")
        # A handler runs between two steps of the loop, which may sleep until something comes.
        asyncio.get_running_loop().call_soon_threadsafe(self._begin_drain)

    def _begin_drain(self) -> None:
        self._drain = asyncio.create_task(self._end_when_idle())

    async def _end_when_idle(self) -> None:
        latest = monotonic() + DRAIN_SECONDS
        while runs.running and monotonic() < latest:
            await asyncio.sleep(PAUSE)
        super().handle_exit(signal.SIGTERM, None)


class DrainingWorker(DrainingServer, HandedServer):
    """One of several, whose front tells it to end."""
