"""Two replicas behind each proxy of deploy/: who comes where, what a class hears over both, and one that ends."""

import asyncio
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_server_config import XSRF_COOKIE_NAME
from websockets.asyncio.client import connect
from websockets.typing import Subprotocol

from bench import load
from bench.load import ANSWER, HAND_IN, OPEN, Action, session
from server.classes.steps import Step
from server.classes.store import Classes
from server.http.class_news import ROUTE
from server.http.workers import COOKIE
from server.library.visitors import name_person
from tests.browser.harness import ROOT, UVICORN, free_port, served
from tests.coroutines import finish
from tests.postgres_server import LACKS, postgres

pytestmark = pytest.mark.long

HEARD = 1.0  # seconds until news reach another replica's visitors
LARGE = 4 * 2**20  # bytes of an upload, which is more than a proxy takes by itself
BACK = 30.0  # seconds until a replica that came back has its visitors
QUERY = {"model": "stories", "text": "Once upon a time"}
# What is added to each file for the tests alone: by which replica a request was answered.
TELLS = {
    "nginx": ("proxy_pass http://loupe;", "proxy_pass http://loupe; add_header X-Replica $upstream_addr always;"),
    "caddy": ("health_uri", "header_down X-Replica {http.reverse_proxy.upstream.hostport}\n\t\thealth_uri"),
}
FILES = {"nginx": "nginx.conf", "caddy": "Caddyfile"}


class Replicas:
    """Two servers that share class sessions and a folder of runs."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.ports = folder, (free_port(), free_port())
        self.stacks = {port: ExitStack() for port in self.ports}

    def start(self, port: int) -> None:
        self.stacks[port].enter_context(served(UVICORN, "/readyz", self.folder / f"{port}.log", port))

    def stop(self, port: int) -> None:
        self.stacks[port].close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where class sessions are kept: a PostgreSQL where there is one, else a file."""
    if LACKS:
        yield str(tmp_path_factory.mktemp("classes") / "classes.sqlite")
        return
    with postgres() as server:
        yield server.new_database()


@pytest.fixture(scope="module")
def replicas(place: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replicas]:
    folder = tmp_path_factory.mktemp("replicas")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOUPE_DATABASE" if "://" in place else "LOUPE_CLASSES", place)
        patch.setenv("LOUPE_RUNS", str(folder / "runs"))
        patch.setenv("LOUPE_UPLOADS", str(folder / "uploads"))
        both = Replicas(folder)
        try:
            for port in both.ports:
                both.start(port)
            yield both
        finally:
            for port in both.ports:
                both.stop(port)


@contextmanager
def proxied(name: str, replicas: Replicas, folder: Path) -> Iterator[str]:
    """Runs a proxy with its file, on a free port and before these replicas; yields its address."""
    port, text = free_port(), (ROOT / "deploy" / FILES[name]).read_text()
    ours = {"127.0.0.1:8501": replicas.ports[0], "127.0.0.1:8502": replicas.ports[1]}
    changes = [(old, f"127.0.0.1:{new}") for old, new in ours.items()]
    changes += [TELLS[name], ("listen 8080;", f"listen {port};") if name == "nginx" else (":8080", f":{port}")]
    for old, new in changes:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    file = folder / FILES[name]
    file.write_text(text)
    command = ["caddy", "run", "--config", str(file), "--adapter", "caddyfile"]
    if name == "nginx":
        here = f"daemon off; pid {folder}/pid; error_log {folder}/error.log;"
        command = ["nginx", "-p", str(folder), "-c", str(file), "-e", f"{folder}/error.log", "-g", here]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env={**os.environ, "HOME": str(folder)}, stdout=log, stderr=log)
        try:
            waits_for(lambda: socket.create_connection(("127.0.0.1", port), 1).close() is None, 20)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)


def waits_for(check: Callable[[], bool], patience: float) -> float:
    """Seconds until something is so; fails where it is not in time."""
    begun = time.monotonic()
    while True:
        try:
            if check():
                return time.monotonic() - begun
        except OSError:
            pass
        assert time.monotonic() - begun < patience, "it did not come in time"
        time.sleep(0.05)


def ask(address: str, cookie: str = "", path: str = "/walkthrough") -> tuple[HTTPResponse, bytes]:
    """The answer to a request over a connection of its own, as after a reload."""
    connection = HTTPConnection(urlsplit(address).netloc, timeout=30)
    named = {"cookie": f"other=1; {COOKIE}={cookie}"} if cookie else {}
    connection.request("GET", path, headers={"accept": "text/html"} | named)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def replica_of(address: str, cookie: str) -> int:
    answer, _content = ask(address, cookie)
    return int((answer.headers["X-Replica"] or ":0").rpartition(":")[2]) if answer.status == 200 else 0


def news_of(address: str, cookie: str, code: str) -> str:
    _answer, content = ask(address, cookie, f"{ROUTE}?room={code}&all=1")
    version: str = json.loads(content)["version"]
    return version


async def upload(address: str, cookie: str, of: str) -> int:
    """The status of a file sent by a browser `of` whose session is that of `cookie`: 400 from a replica that has no
    such session."""
    place = f"ws{address.removeprefix('http')}/_stcore/stream"
    headers = {"cookie": f"{COOKIE}={cookie}", "origin": address}
    async with connect(place, subprotocols=[Subprotocol("streamlit")], additional_headers=headers) as socket:
        message = BackMsg()
        message.rerun_script.page_script_hash = ""
        await socket.send(message.SerializeToString())
        while (told := ForwardMsg.FromString(await socket.recv(decode=False))).WhichOneof("type") != "new_session":
            pass
        place, xsrf = told.new_session.initialize.session_id, generate_xsrf_token_string()
        sent = await asyncio.to_thread(
            httpx2.put,
            f"{address}/_stcore/upload_file/{place}/file",
            files={"file": ("a.csv", bytes(LARGE))},
            headers={"cookie": f"{COOKIE}={of}; {XSRF_COOKIE_NAME}={xsrf}", "x-xsrftoken": xsrf},
            timeout=60,
        )
        return sent.status_code


@pytest.mark.parametrize("name", FILES)
def test_two_replicas_behind_a_proxy(
    name: str, replicas: Replicas, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not shutil.which(name):
        pytest.skip(f"no {name} (Debian has it under that name)")
    with proxied(name, replicas, tmp_path) as address:
        first, _content = ask(address)  # of a browser that nobody knows
        named = re.search(rf"{COOKIE}=([0-9a-f]{{32}})", first.headers["set-cookie"])
        assert first.status == 200 and named
        theirs = replica_of(address, named[1])
        assert {replica_of(address, named[1]) for _ in range(5)} == {theirs} <= set(replicas.ports)
        cookies: dict[int, str] = {}
        while len(cookies) < 2:
            new = secrets.token_hex(16)
            cookies[replica_of(address, new)] = new
        assert set(cookies) == set(replicas.ports)
        hear_of_each_other(address, place, [cookies[port] for port in replicas.ports], monkeypatch)
        # A browser's websocket and its uploads come to the same replica.
        ours, others = (cookies[port] for port in replicas.ports)
        assert [finish(upload(address, ours, of)) for of in (ours, others)] == [204, 400]

        gone, left = replicas.ports
        replicas.stop(gone)
        try:
            waits_for(lambda: replica_of(address, cookies[gone]) == left, 10)
            assert finish(upload(address, cookies[gone], cookies[left])) == 204
            assert replica_of(address, cookies[left]) == left
        finally:
            replicas.start(gone)
        waits_for(lambda: replica_of(address, cookies[gone]) == gone, BACK)
        assert replica_of(address, cookies[left]) == left


def hear_of_each_other(address: str, place: str, cookies: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A class whose teacher is at one replica and whose learner is at the other."""
    teacher, learner = cookies
    classes = Classes(place)
    code, _secret = classes.start(name_person(teacher), [Step("walkthrough", QUERY, "loss"), Step("attention", QUERY)])
    classes.join(code, "Ada", name_person(learner))
    goes_on, next_step = f"class go on {code}", "class go 1"
    monkeypatch.setattr(load, "WIDGETS", (*load.WIDGETS, goes_on, next_step))

    async def hand_in() -> None:
        async with session(address, learner) as visitor:
            for action in (
                Action("walkthrough"),
                Action("walkthrough", OPEN, True),
                Action("walkthrough", ANSWER, 1.5),
                Action("walkthrough", HAND_IN, None),
            ):
                await visitor.act(action)

    async def teach() -> None:
        async with session(address, teacher) as visitor:
            for action in (Action("teach"), Action("teach", goes_on, None), Action("teach", next_step, None)):
                await visitor.act(action)

    for who, listens, changed in (
        (hand_in, teacher, lambda: len(classes.answers(code)) == 1),
        (teach, learner, lambda: classes.find(code).at == 1),
    ):
        hears = partial(news_of, address, listens, code)
        before = hears()
        finish(who())
        assert changed()
        waits_for(lambda before=before, hears=hears: hears() != before, HEARD)
