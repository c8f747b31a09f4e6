"""Numbers of a server in the text format of Prometheus, of all of its processes, for who may ask.

Nothing of what a person wrote stands in them: pages are named from the menu alone.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from ipaddress import ip_address

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from engine.budget import budget
from engine.model.pass_queue import pass_queue
from engine.training.launch.queue import Queue
from server.http.page_names import name_page
from server.http.storage import folders
from server.http.streamlit_patches.observed_runs import runs
from server.http.workers import SHARED
from server.settings import METRICS_TOKEN

METRICS = "/metrics"
REFUSED = "Metrics are for this machine, or with the token of LOUPE_METRICS_TOKEN."
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
FORWARDED = ("x-forwarded-for", "x-real-ip", "forwarded")
STREAM = "/_stcore/stream"  # the connection of a session
OTHERS = "/_stcore/metrics"  # Streamlit's own numbers

own = CollectorRegistry()
RUN_SECONDS = Histogram(
    "loupe_script_run_seconds", "Time of a run of a page's script or fragment", ["page"], buckets=BUCKETS, registry=own
)
SESSIONS = Gauge("loupe_sessions", "Open sessions", multiprocess_mode="livesum", registry=own)
WAITING = Gauge(
    "loupe_forwards_waiting", "Heavy forward passes that wait for their turn", multiprocess_mode="livesum", registry=own
)
TRACES = Gauge("loupe_trace_bytes", "Bytes of kept traces", multiprocess_mode="livesum", registry=own)


class Trainings(Collector):
    """Trainings of this machine, whichever process has started them."""

    def collect(self) -> Iterator[Metric]:
        queue = Queue(budget.runs_folder)
        yield GaugeMetricFamily("loupe_runs_queued", "Trainings that wait for their turn", len(queue.names()))
        yield GaugeMetricFamily("loupe_runs_training", "Trainings that go on", queue.training())


class CountSessions:
    """Counts the connections of sessions, and gives Streamlit's numbers to nobody else than Loupe's."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"].endswith(OTHERS) and not may_ask(Request(scope)):
            return await PlainTextResponse(REFUSED, 403)(scope, receive, send)
        if scope["type"] != "websocket" or not scope["path"].endswith(STREAM):
            return await self.app(scope, receive, send)
        SESSIONS.inc()
        try:
            await self.app(scope, receive, send)
        finally:
            SESSIONS.dec()


def note_run(address: str, seconds: float) -> None:
    from engine.runtime.library import traces

    RUN_SECONDS.labels(name_page(address)).observe(seconds)
    TRACES.set(traces.shelf.bytes)


async def tell_metrics(request: Request) -> Response:
    if not may_ask(request):
        return PlainTextResponse(REFUSED, 403)
    reads_runs = not await folders.find_fault()
    return Response(await run_in_threadpool(collect, reads_runs), media_type=CONTENT_TYPE_LATEST)


def collect(reads_runs: bool) -> bytes:
    """Of all processes where they have a folder in common, else of this one; without trainings where their folder does
    not answer."""
    asked = own
    if os.environ.get(SHARED):
        asked = CollectorRegistry()
        MultiProcessCollector(asked)
    machine = CollectorRegistry()
    if reads_runs:
        machine.register(Trainings())
    return generate_latest(asked) + generate_latest(machine)


def may_ask(request: Request) -> bool:
    """Who has the token, or is at this machine with no proxy in between."""
    said = request.headers.get("authorization", "").encode()
    if METRICS_TOKEN and secrets.compare_digest(said, f"Bearer {METRICS_TOKEN}".encode()):
        return True
    if request.client is None or any(name in request.headers for name in FORWARDED):
        return False
    try:
        return ip_address(request.client.host).is_loopback
    except ValueError:  # a name instead of an address
        return False


runs.listeners.append(note_run)
pass_queue.on_change = WAITING.set
