"""What SIGTERM does: the probe says so at once, nobody begins, what runs may end, and a training goes on."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from engine.training import read_recipe, read_status
from engine.training.recipe.recipe_file import write_recipe
from tests.browser.harness import ROOT, free_port
from tests.engine.training.waiting import until

pytestmark = pytest.mark.long
SERVER = """
import sys
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from engine.training.launch.processes import Processes
from engine.training.launch.warm_trainer import shared
from server.http.draining import DrainingServer
from server.http.readiness import ALIVE, READY, Gate, tell_alive, tell_ready
from server.http.streamlit_patches.observed_runs import runs

def end_run(request):
    runs.count(-1)
    return PlainTextResponse("")

shared.enabled = True
shared.keep()
Processes(sys.argv[2], shared).start(sys.stdin.read(), "kept")
runs.count(1)  # a script that runs until the test ends it
routes = [
    Route("/", lambda _: PlainTextResponse("")), Route("/end", end_run),
    Route(ALIVE, tell_alive), Route(READY, tell_ready),
]
app = Starlette(routes=routes, middleware=[Middleware(Gate)])
DrainingServer(uvicorn.Config(app, port=int(sys.argv[1]), log_level="error", timeout_graceful_shutdown=1)).run()
"""


def ask(port: int, path: str) -> int:
    """Status of an answer; 0 where nobody answers."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={"accept": "text/html"} if path == "/" else {})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


@pytest.mark.parametrize("ends", [True, False], ids=["a script ends", "a script does not end"])
def test_a_server_drains_and_its_training_goes_on(ends: bool, tmp_path: Path) -> None:
    recipe = read_recipe(ROOT / "assets" / "lab" / "reverse.toml")
    recipe = replace(recipe, schedule=replace(recipe.schedule, steps=100_000))
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER, str(port), str(tmp_path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        env={**os.environ, "LOUPE_DRAIN_SECONDS": "60" if ends else "1"},
    )
    assert process.stdin is not None
    process.stdin.write(write_recipe(recipe).encode())
    process.stdin.close()
    status_file = tmp_path / "kept" / "status.json"
    pid = 0
    try:
        until(lambda: ask(port, "/readyz") == 200, 60)
        process.send_signal(signal.SIGTERM)
        if ends:
            until(lambda: ask(port, "/readyz") == 503)
            assert [ask(port, path) for path in ("/healthz", "/")] == [200, 503]
            assert process.poll() is None
            assert ask(port, "/end") == 200
        assert process.wait(20) == -signal.SIGTERM
        status = read_status(status_file)
        assert status is not None
        pid = status.pid
        step = status.step

        def trains_on() -> bool:
            now = read_status(status_file)
            assert now is not None and now.state in ("queued", "preparing", "running"), now
            return now.state == "running" and now.step > step

        until(trains_on, 90)
    finally:
        process.kill()
        process.wait()
        if pid:
            os.kill(pid, signal.SIGKILL)
