"""What an operator asks of a server, and what it does as it begins and ends."""

import asyncio
import io
import json
import logging
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client import generate_latest
from pytest import MonkeyPatch
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketDenialResponse
from starlette.websockets import WebSocket
from streamlit.testing.v1 import AppTest

from server.http import headers, logs, metrics
from server.http.readiness import ALIVE, READY, Gate, readiness, tell_alive, tell_ready

PAGE = {"accept": "text/html"}


async def talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.close()


@pytest.fixture
def client() -> Iterator[TestClient]:
    routes = [
        Route(metrics.METRICS, metrics.tell_metrics),
        Route(f"/lab{metrics.OTHERS}", lambda _request: PlainTextResponse("theirs")),
        Route(ALIVE, tell_alive),
        Route(READY, tell_ready),
        Route("/", lambda _request: PlainTextResponse("here")),
        WebSocketRoute("/talk", talk),
    ]
    between = [Middleware(Gate), Middleware(metrics.CountSessions)]
    with TestClient(Starlette(routes=routes, middleware=between)) as client:
        yield client
    readiness.warming, readiness.draining = None, False


def test_nobody_is_served_before_the_warm_up_or_begins_after_the_end(client: TestClient) -> None:
    assert client.portal is not None
    over = client.portal.call(asyncio.Event)
    readiness.warming = client.portal.call(begin, over)
    assert client.get(ALIVE).status_code == 200
    answer = client.get(READY)
    assert (answer.status_code, answer.json()) == (503, {"status": "warming up"})
    with ThreadPoolExecutor() as others:
        coming = others.submit(client.get, "/", headers=PAGE)
        assert client.get(READY).status_code == 503 and not coming.done()
        client.portal.call(over.set)
        assert coming.result(20).text == "here"
    assert client.get(READY).json() == {"status": "ready"}

    readiness.draining = True
    assert client.get(ALIVE).status_code == 200 and client.get("/").text == "here"
    answer = client.get(READY)
    assert (answer.status_code, answer.json()) == (503, {"status": "draining"})
    answer = client.get("/", headers=PAGE)
    assert answer.status_code == 503 and "reload" in answer.text
    with pytest.raises(WebSocketDenialResponse), client.websocket_connect("/talk"):
        pass


COUNT = re.compile(r'^loupe_script_run_seconds_count\{page="(.*)"\} (.*)$', re.M)


def count_runs() -> dict[str, float]:
    """Runs that this process has noted, by page; other tests note some too."""
    return {page: float(count) for page, count in COUNT.findall(generate_latest(metrics.own).decode())}


def test_metrics_name_no_more_than_pages_and_are_not_for_all(client: TestClient, monkeypatch: MonkeyPatch) -> None:
    before = count_runs()
    for address in ("", "attention", "attention", "a text"):
        metrics.note_run(address, 0.3)
    for place in (metrics.METRICS, f"/lab{metrics.OTHERS}"):  # the test's client has a name, and no address
        assert client.get(place).status_code == 403
    monkeypatch.setattr(metrics, "METRICS_TOKEN", "é")
    for token in ("", "Bearer ", "Bearer e"):
        assert client.get(metrics.METRICS, headers={"authorization": token}).status_code == 403
    monkeypatch.setattr(metrics, "METRICS_TOKEN", "secret")
    said = client.get(metrics.METRICS, headers={"authorization": "Bearer secret"}).text
    counts = {page: count - before.get(page, 0) for page, count in count_runs().items()}
    assert {page: count for page, count in counts.items() if count} == {"home": 1, "attention": 2, "other": 1}
    assert dict(COUNT.findall(said)) == {page: str(count) for page, count in count_runs().items()}
    assert "\nloupe_runs_queued 0.0\n" in said and "\nloupe_trace_bytes " in said and "text" not in said.split()

    here = TestClient(client.app, client=("127.0.0.1", 1))
    assert here.get(metrics.METRICS).status_code == 200
    assert here.get(metrics.METRICS, headers={"x-forwarded-for": "127.0.0.1"}).status_code == 403


def test_a_line_of_the_log_quotes_nobody() -> None:
    lines = []
    for name, text in (("loupe", "run"), ("streamlit.runtime", "Failed: my secret"), ("uvicorn.error", "a %s of")):
        try:
            raise ValueError("my secret text")
        except ValueError:
            record = logging.LogRecord(name, logging.ERROR, "file.py", 7, text, ("my secret",), sys.exc_info())
        record.page, record.seconds = "attention", 0.5
        lines.append(logs.JsonLines().format(record))
    read = [json.loads(line) for line in lines]
    assert [line["event"] for line in read] == ["run", "streamlit.runtime line 7", "a %s of"]
    assert {"level": "error", "page": "attention", "seconds": 0.5, "error": "ValueError"}.items() <= read[0].items()
    assert "secret" not in "".join(lines) and Path(__file__).name in read[0]["at"]


SAYS = """
import logging
logging.getLogger("loupe").warning("something")
"""


def test_a_line_of_the_log_has_its_page_and_the_number_of_its_session() -> None:
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    handler.addFilter(logs.Origin())
    handler.setFormatter(logging.Formatter(logs.TEXT))
    logging.getLogger("loupe").addHandler(handler)
    try:
        AppTest.from_string(SAYS).run()
        logging.getLogger("loupe").warning("of the server")
    finally:
        logging.getLogger("loupe").removeHandler(handler)
    first, second = lines.getvalue().splitlines()
    assert first.endswith(" WARNING home session 1: something") and second.endswith(" WARNING of the server")


def test_a_page_says_what_it_may_do_and_who_may_frame_it() -> None:
    own = {"content-security-policy": "default-src 'none'"}
    answers = {"/": HTMLResponse(""), "/file": PlainTextResponse(""), "/own": HTMLResponse("", headers=own)}
    routes = [Route(path, answer) for path, answer in answers.items()]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(headers.SecurityHeaders)]))
    said = client.get("/").headers
    assert said["x-content-type-options"] == "nosniff" and said["referrer-policy"] == "same-origin"
    assert "; object-src 'none'; " in said["content-security-policy"]
    assert said["content-security-policy"].endswith("; frame-ancestors 'self'")
    assert "content-security-policy" not in client.get("/file").headers
    assert own.items() <= client.get("/own").headers.items()
    assert headers.write_policy("https://a.example https://b.example").endswith(
        "'self' https://a.example https://b.example"
    )
    with pytest.raises(SystemExit, match="frame_ancestors must be addresses"):
        headers.write_policy("https://a.example; script-src *")


async def begin(over: asyncio.Event) -> "asyncio.Task[bool]":
    return asyncio.create_task(over.wait())
