"""Several processes serve one address: all connections of a browser go to the same one, by the cookie that names it.

What a person opened, writes and undoes lives in one process, and Python runs one thread at a time in each. The process
that listens accepts a connection, looks at its first request without taking it, and hands the socket itself over; from
then on the worker and the browser speak with nobody in between, and the worker sees where the visitor comes from.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import uvicorn
from prometheus_client.multiprocess import mark_process_dead

from server.http.readiness import readiness

COOKIE = "loupe_visitor"  # as pages/controls/visitor.py reads it
NAMED = re.compile(rb"\b%s=([0-9a-f]{32})\b" % COOKIE.encode())
MOST_HEAD = 2**16  # bytes of a first request that are looked through
PATIENCE = 30.0  # seconds until the head of a first request is there
PAUSE = 0.01  # seconds until a head that has come in part is looked at again
FIRST_PAUSE, LAST_PAUSE = 1.0, 60.0  # seconds until a worker that has not come up is tried again
BACKLOG = 2048
SHARED = "PROMETHEUS_MULTIPROC_DIR"  # where the workers put their numbers; prometheus_client's name
log = logging.getLogger("loupe")


class CannotServe(RuntimeError):
    """A port that is taken, or a worker that does not start."""


@dataclass
class Worker:
    """A process, and the socket by which it is handed connections. It ends where the other end is closed."""

    process: subprocess.Popen[bytes]
    link: socket.socket

    @classmethod
    def start(cls, command: Sequence[str], number: int, workers: int) -> Worker:
        ours, theirs = socket.socketpair()
        with theirs:
            place = ["--worker", f"{theirs.fileno()}:{number}:{workers}"]
            process = subprocess.Popen([*command, *place], pass_fds=(theirs.fileno(),))
        ours.setblocking(False)
        return cls(process, ours)

    async def ready(self) -> None:
        """Raises CannotServe where it ended before it was."""
        said = b""
        with suppress(OSError):  # it ended with something unread
            said = await asyncio.get_running_loop().sock_recv(self.link, 1)
        if not said:
            raise CannotServe("A process of Loupe ended as it started; what it said stands above.")

    def end(self) -> None:
        self.link.close()
        self.process.terminate()


@dataclass
class Place:
    """Number of this process, counted from 0, among the `workers`."""

    number: int = 0
    workers: int = 1

    def new_name(self) -> str:
        """A random name for a browser whose connections come here."""
        while True:
            name = secrets.token_hex(16)
            if worker_of(name, self.workers) == self.number:
                return name


here = Place()


def worker_of(name: str, workers: int) -> int:
    return int(name, 16) % workers


class Front:
    """Listens, and deals connections out among `workers`; one that ends is started anew."""

    def __init__(self, command: Sequence[str], workers: int) -> None:
        self.start = [partial(Worker.start, command, number, workers) for number in range(workers)]
        self.workers: list[Worker] = []
        self.turns = count()
        self.able = set[int]()  # numbers of the workers that serve
        self.failed = set[int]()  # of those that have not come up since they ended
        self.serving = False
        self.ending = asyncio.Event()

    async def serve(self, host: str, port: int) -> None:
        """Until the process is told to end: SIGTERM lets its workers drain, a second one or Ctrl+C cancels this. A
        worker begins where the one before is ready, since they measure. Raises CannotServe, with a sentence, for a
        port that is taken or a worker that does not start."""
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        loop.add_signal_handler(signal.SIGINT, task.cancel)
        loop.add_signal_handler(signal.SIGTERM, self.drain, task)
        with await asyncio.to_thread(listen, host, port) as listening:
            try:
                for number, start in enumerate(self.start):
                    self.workers.append(start())
                    await self.workers[-1].ready()
                    self.able.add(number)
                print(f"{len(self.workers)} processes serve http://{host}:{port}", flush=True)
                loop.add_reader(listening, self.accept, listening)
                self.serving = True
                await asyncio.gather(*map(self.keep, range(len(self.workers))))
            finally:
                loop.remove_reader(listening)
                for worker in self.workers:
                    worker.end()

    def drain(self, task: asyncio.Task[object]) -> None:
        """Lets the workers end in their time, while whoever asks is still answered."""
        if self.ending.is_set() or not self.serving:
            task.cancel()
        self.ending.set()
        for worker in self.workers:
            worker.process.terminate()

    async def keep(self, number: int) -> None:
        """Starts a worker anew as often as it ends by itself, at once, and with a growing pause where it did not come
        up."""
        pause = FIRST_PAUSE
        while True:
            code = await asyncio.to_thread(self.workers[number].process.wait)
            self.able.discard(number)
            if self.ending.is_set():
                return
            log.warning("A process of Loupe ended (%s) and is started anew.", code, extra={"code": code})
            self.workers[number].link.close()
            if SHARED in os.environ:
                mark_process_dead(self.workers[number].process.pid)  # its sessions are no longer open
            if number in self.failed:
                if await self.ends_within(pause):
                    return
                pause = min(2 * pause, LAST_PAUSE)
            self.workers[number] = self.start[number]()
            try:
                await self.workers[number].ready()
            except CannotServe:
                self.failed.add(number)
            else:
                pause = FIRST_PAUSE
                self.failed.discard(number)
                self.able.add(number)

    async def ends_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.ending.wait(), seconds)
        return self.ending.is_set()

    def accept(self, listening: socket.socket) -> None:
        with suppress(OSError):  # it has gone meanwhile
            connection, _ = listening.accept()
            connection.setblocking(False)
            asyncio.get_running_loop().create_task(self.deal(connection))

    async def deal(self, connection: socket.socket) -> None:
        """Hands the connection over, and closes it here."""
        with connection, suppress(OSError, TimeoutError):  # a browser that went, or says nothing
            head = await asyncio.wait_for(peek(connection), PATIENCE)
            if head:
                link = self.workers[self.choose(head)].link
                socket.send_fds(link, [b"\n"], [connection.fileno()])

    def choose(self, head: bytes) -> int:
        """The worker of the browser that sent a request's `head`, for which it waits as that begins anew; each of those
        that serve in its turn for one that has no name yet, which it gets from there, or whose worker has not come
        up."""
        named = NAMED.search(head)
        if named and (own := worker_of(named[1].decode(), len(self.workers))) not in self.failed:
            return own
        able = sorted(self.able) or range(len(self.workers))
        return able[next(self.turns) % len(able)]


class HandedServer(uvicorn.Server):
    """A worker's server, which listens nowhere: its connections come through `link`."""

    def __init__(self, config: uvicorn.Config, link: socket.socket) -> None:
        super().__init__(config)
        self.link = link

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        await readiness.wait()
        asyncio.get_running_loop().add_reader(self.link, self.take)
        self.link.send(b"\n")  # ready

    def take(self) -> None:
        said, descriptors, _, _ = socket.recv_fds(self.link, 1, 1)
        loop = asyncio.get_running_loop()
        if not said:  # the process that listens has ended
            loop.remove_reader(self.link)
            self.should_exit = True
        for descriptor in descriptors:
            protocol: Any = self.config.http_protocol_class
            state = {"server_state": self.server_state, "app_state": self.lifespan.state}
            made = partial(protocol, config=self.config, **state)
            loop.create_task(loop.connect_accepted_socket(made, socket.socket(fileno=descriptor)))


def serve_as_worker(config: uvicorn.Config, said: str, server: type[HandedServer] = HandedServer) -> None:
    """Serves as the worker that `Worker.start` started; `said` is what stands behind --worker there."""
    descriptor, here.number, here.workers = map(int, said.split(":"))
    with socket.socket(fileno=descriptor) as link:
        server(config, link).run()


def listen(host: str, port: int) -> socket.socket:
    """Raises CannotServe, with a sentence, as for a port that is taken."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        why = error.strerror or error
        raise CannotServe(f"Loupe cannot listen at {host}:{port}: {why}; choose another host or port.") from None
    listening.setblocking(False)
    return listening


async def peek(connection: socket.socket) -> bytes:
    """The head of the first request, or as much as there is of one that is too long; it stays to be read."""
    while True:
        await readable(connection)
        head = connection.recv(MOST_HEAD, socket.MSG_PEEK)
        if not head or b"\r\n\r\n" in head or len(head) == MOST_HEAD:
            return head
        await asyncio.sleep(PAUSE)


async def readable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    came = asyncio.Event()
    loop.add_reader(connection, came.set)
    try:
        await came.wait()
    finally:
        loop.remove_reader(connection)
