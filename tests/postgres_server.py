"""A PostgreSQL of a test's own: in a temporary folder, on a free port, killed and started again as a test wants."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from tests.browser.harness import free_port

PROGRAMS = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), default=None)
STARTUP = 30.0  # seconds until it must answer
LACKS = "" if PROGRAMS and find_spec("psycopg") else "no PostgreSQL (Debian: postgresql) with requirements-replicas.txt"


class Postgres:
    """`user` is who it runs as: it refuses root."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.names = folder, free_port(), count()
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(folder, self.user)
        self.call("initdb", "--no-sync", "--auth=trust", "--username=loupe", "--encoding=UTF8", "-D", folder / "data")

    def command(self, program: str, *given: object) -> list[str]:
        assert PROGRAMS is not None
        return [str(PROGRAMS / program), *map(str, given)]

    def call(self, program: str, *given: object) -> bool:
        done = subprocess.run(self.command(program, *given), user=self.user, cwd=self.folder, capture_output=True)
        if done.returncode and program != "pg_isready":
            raise RuntimeError(f"expected {program} to work, got {done.stderr.decode()[-2000:]}")
        return not done.returncode

    def start(self) -> None:
        place = ["-c", "listen_addresses=127.0.0.1", "-k", self.folder, "-p", self.port, "-D", self.folder / "data"]
        deadline = time.monotonic() + STARTUP
        with (self.folder / "log").open("a") as log:
            # One that was killed leaves its memory behind until the last of its processes has noticed.
            self.process = subprocess.Popen(
                self.command("postgres", *place), user=self.user, cwd=self.folder, stdout=log, stderr=log
            )
        while not self.call("pg_isready", "-h", "127.0.0.1", "-p", self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"expected PostgreSQL to start, got {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.05)

    def kill(self) -> None:
        """Ends all of its processes at once, as a machine that fails does."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()  # first, as it would start the others anew
        for one in children:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(children, 10)
        self.process.wait()

    def new_database(self) -> str:
        name = f"loupe{next(self.names)}"
        self.call("createdb", "-h", "127.0.0.1", "-p", self.port, "-U", "loupe", name)
        return f"postgresql+psycopg://loupe@127.0.0.1:{self.port}/{name}"


@contextmanager
def postgres() -> Iterator[Postgres]:
    with TemporaryDirectory(prefix="loupe-postgres-") as folder:
        server = Postgres(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.process.send_signal(signal.SIGINT)  # without waiting for who is connected
            server.process.wait(20)
