"""How a server greets who starts it: a free port, the address, a browser on a desktop, at its end what trains on."""

from __future__ import annotations

import errno
import os
import sys
import webbrowser
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Thread
from time import sleep

from engine.training.run.folder import RunFolder, list_runs
from engine.training.run.status import ACTIVE, read_status
from server.http.readiness import READY
from server.http.workers import CannotServe, listen
from server.settings import GIVEN

PORT, TRIES = 8501, 50  # the first port, and how many are tried where nobody asked for one
PAUSE = 0.2  # seconds between two questions whether the server is ready
EVERYWHERE = "", "0.0.0.0", "::"  # hosts that are every address of a machine


def choose_port(host: str, asked: int | None) -> int:
    """The port that is asked for, else the first from PORT on that is free. Raises CannotServe, with a sentence, where
    there is none."""
    for port in range(PORT, PORT + TRIES) if asked is None else (asked,):
        try:
            listen(host, port).close()
        except CannotServe as error:
            taken = isinstance(error.__context__, OSError) and error.__context__.errno == errno.EADDRINUSE
            if asked is not None or not taken or port == PORT + TRIES - 1:
                raise
            continue
        if asked is None and port != PORT:
            print(f"Port {PORT} is taken by another program, so Loupe takes {port}.", flush=True)
        return port
    raise AssertionError("a port is found, or an error raised")


def greet(host: str, port: int, opens: bool) -> None:
    """Says the address, and opens it in a browser once somebody is served there."""
    near = "127.0.0.1" if host in EVERYWHERE else host
    address = f"http://{f'[{near}]' if ':' in near else near}:{port}"
    print(f"Loupe: {address}  (Ctrl+C ends it)", flush=True)
    if opens and has_desktop():
        Thread(target=open_when_ready, args=(near, port, address), daemon=True).start()


def has_desktop() -> bool:
    """Tells whether a person sits before this machine, as far as a program can know."""
    if not sys.stdout.isatty() or "SSH_CONNECTION" in os.environ:
        return False
    return sys.platform in ("darwin", "win32") or bool(os.environ.keys() & {"DISPLAY", "WAYLAND_DISPLAY"})


def open_when_ready(host: str, port: int, address: str) -> None:
    while not is_ready(host, port):
        sleep(PAUSE)
    webbrowser.open(address)


def is_ready(host: str, port: int) -> bool:
    connection = HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", READY)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def tell_trainings(folder: str | Path = GIVEN.runs_folder) -> None:
    """Says which trainings go on without the server."""
    found = [one.name for one in list_runs(folder) if is_active(one)]
    if found:
        print(f"Still training, and going on: {', '.join(found)}. The page Train has them when Loupe is started again.")


def is_active(folder: Path) -> bool:
    status = read_status(RunFolder(folder).status)
    return status is not None and status.state in ACTIVE
