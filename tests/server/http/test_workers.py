"""Several processes behind one port: whose connections come where, and what happens as one of them ends."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from time import monotonic, sleep

import pytest

from engine.training.run.status import Status, write_status
from server.http import starting
from server.http.workers import COOKIE, CannotServe, Place, worker_of
from tests.browser.harness import ROOT, free_port

WORKERS = 2
WORKER = """
import os, sys
import uvicorn
from server.http.workers import here, serve_as_worker

async def app(scope, receive, send):
    said = f"{os.getpid()} {here.number} {scope['client'][0]} {here.new_name()}".encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(said))]})
    await send({"type": "http.response.body", "body": said})

if os.path.exists(os.environ["FAULT"]):
    sys.exit("It cannot start.")
serve_as_worker(uvicorn.Config(app, lifespan="off", log_level="error"), sys.argv[-1])
"""
FRONT = """
import asyncio, sys
from server.http.workers import Front

asyncio.run(Front([sys.executable, "-c", sys.argv[1]], int(sys.argv[2])).serve("127.0.0.1", int(sys.argv[3])))
"""


@pytest.fixture
def fault(tmp_path: Path) -> Path:
    """A file, as long as which is there no process comes up."""
    return tmp_path / "fault"


@pytest.fixture
def front(fault: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    port = free_port()
    command = [sys.executable, "-c", FRONT, WORKER, str(WORKERS), str(port)]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "FAULT": str(fault)}
    process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"2 processes serve")
    yield process, port
    process.terminate()
    process.wait(20)


def ask(port: int, name: str = "") -> tuple[int, int, str, str]:
    """Process, number and the visitor's address as the worker has them, and the name it would give."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    connection.request("GET", "/", headers={"cookie": f"other=1; {COOKIE}={name}"} if name else {})
    process, number, client, new = connection.getresponse().read().decode().split()
    connection.close()
    return int(process), int(number), client, new


def comes(check: Callable[[], bool]) -> bool:
    deadline = monotonic() + 20
    while not check() and monotonic() < deadline:
        sleep(0.05)
    return check()


def test_a_browser_stays_with_one_process(front: tuple[subprocess.Popen[bytes], int]) -> None:
    _, port = front
    first = [ask(port) for _ in range(4)]
    assert [number for _, number, _, _ in first] == [0, 1, 0, 1]
    for process, number, client, name in first:
        assert client == "127.0.0.1"
        assert worker_of(name, WORKERS) == number
        assert {ask(port, name)[0] for _ in range(3)} == {process}


def test_a_head_that_comes_in_parts_is_waited_for(front: tuple[subprocess.Popen[bytes], int]) -> None:
    _, port = front
    for number in range(WORKERS):
        name = Place(number, WORKERS).new_name()
        with socket.create_connection(("127.0.0.1", port), timeout=20) as link:
            for part in (b"GET / HTTP/1.1\r\nhost: x\r\nconn", b"ection: close\r\ncookie: ", b"%s=" % COOKIE.encode()):
                link.sendall(part)
                sleep(0.05)
            link.sendall(name.encode() + b"\r\n\r\n")
            assert f" {number} 127.0.0.1 ".encode() in b"".join(iter(lambda: link.recv(4096), b""))


def test_a_process_that_ends_is_started_anew(front: tuple[subprocess.Popen[bytes], int]) -> None:
    _, port = front
    process, number, _, name = ask(port)
    os.kill(process, signal.SIGKILL)
    served = list[tuple[int, int, str, str]]()

    def is_served() -> bool:
        try:
            served.append(ask(port, name))
        except OSError:  # of a connection that went with the process
            return False
        return True

    assert comes(is_served)
    assert served[0][:2] != (process, number)
    assert served[0][1] == number


def test_a_process_that_does_not_come_up_keeps_nobody_waiting_and_is_tried_again(
    front: tuple[subprocess.Popen[bytes], int], fault: Path
) -> None:
    _, port = front
    process, number, _, name = ask(port)
    fault.touch()
    os.kill(process, signal.SIGKILL)

    def is_served_by(expected: bool) -> bool:
        try:
            return (ask(port, name)[1] == number) is expected
        except OSError:  # of a connection that went with the process
            return False

    assert comes(lambda: is_served_by(False))  # the other one
    assert {ask(port)[1] for _ in range(4)} == {1 - number}
    fault.unlink()
    assert comes(lambda: is_served_by(True))
    assert {ask(port)[1] for _ in range(4)} == {0, 1}


def test_all_end_together(front: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = front
    workers = {ask(port)[0] for _ in range(WORKERS)}
    assert len(workers) == WORKERS
    process.kill()  # so that nothing of it can tell them
    process.wait()
    assert comes(lambda: not any(is_alive(one) for one in workers))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_told_to_end_it_waits_for_its_processes_and_starts_none(front: tuple[subprocess.Popen[bytes], int]) -> None:
    process, port = front
    workers = {ask(port)[0] for _ in range(WORKERS)}
    process.terminate()
    assert process.wait(20) == 0
    assert not any(is_alive(one) for one in workers)


def test_who_starts_a_server_is_told_where_it_is_and_what_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotServe, match=f"127.0.0.1:{port}: .*; choose another"):
            starting.choose_port("127.0.0.1", port)
        monkeypatch.setattr(starting, "PORT", port)
        found = starting.choose_port("127.0.0.1", None)
        assert port < found < port + starting.TRIES and f"Port {port} is taken" in capsys.readouterr().out
        assert not starting.is_ready("127.0.0.1", found)
    opened, ready = list[str](), iter([False, True])
    monkeypatch.setattr(starting, "is_ready", lambda host, port: next(ready))
    monkeypatch.setattr(starting.webbrowser, "open", opened.append)
    starting.open_when_ready("127.0.0.1", found, "http://127.0.0.1")
    starting.greet("0.0.0.0", found, opens=True)  # whose output is no terminal
    assert opened == ["http://127.0.0.1"] and f"Loupe: http://127.0.0.1:{found}" in capsys.readouterr().out
    for name, state in (("one", "running"), ("two", "finished"), ("three", "paused")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "recipe.toml").touch()
        write_status(tmp_path / name / "status.json", Status(state=state))
    starting.tell_trainings(tmp_path)
    assert "going on: one, three." in capsys.readouterr().out
