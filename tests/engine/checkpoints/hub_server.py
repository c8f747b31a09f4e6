"""A hub on this machine: the file protocol that huggingface_hub 2.4.0 speaks, with the faults of real ones."""

from __future__ import annotations

import hashlib
import json
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0%s" % (len(data), data)).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def is_lfs(file: str) -> bool:
    return file.endswith((".safetensors", ".bin"))


@dataclass
class Repo:
    files: dict[str, bytes]
    commit: str = COMMIT
    facts: dict[str, Any] = field(default_factory=dict)  # of the listing, beside those made from `files`
    sibling: Callable[[dict[str, Any]], dict[str, Any]] = lambda row: row  # what the listing says of each instead
    private: bool = False
    gated: bool = False

    def listing(self, name: str) -> dict[str, Any]:
        rows = []
        for file, data in self.files.items():
            row: dict[str, Any] = {"rfilename": file, "size": len(data), "blobId": git_id(data)}
            if is_lfs(file):
                row |= {"blobId": "f" * 40, "lfs": {"size": len(data), "sha256": sha256(data), "pointerSize": 134}}
            rows.append(self.sibling(row))
        facts = {"id": name, "sha": self.commit, "private": self.private, "gated": "manual" if self.gated else False}
        return facts | {"siblings": rows, "tags": ["license:mit"]} | self.facts


@dataclass
class Asked:
    method: str
    path: str
    headers: Message
    sent: int = 0  # bytes of the body that were to go out


@dataclass
class Hub:
    """`storage` is the other host, to which large files are redirected."""

    address: str
    storage: str
    repos: dict[str, Repo] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    stored: list[Asked] = field(default_factory=list)  # what `storage` was asked
    token: str = "hf_valid"  # of an account that may read everything
    without_access: str = "hf_other"  # of one that was not let through the gate
    ranges: bool = True
    drop_after: list[int] = field(default_factory=list)  # of the next large files, the bytes sent before the break
    reset: bool = False  # the break is one that the operating system tells at once
    busy: int = 0  # of the next answers of the storage that come after a break, those that are 503
    down: bool = False  # answers 503, storage too
    page: bytes = b""  # sent instead of any answer

    def large(self, file: str) -> list[Asked]:
        """The times that the contents of a large file were asked for."""
        return [asked for asked in self.stored if asked.path.endswith(f"/{file}") and asked.method == "GET"]

    def paths(self) -> set[str]:
        return {asked.path.rpartition("/")[2] for asked in self.asked if "/resolve/" in asked.path}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    hub: Hub

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the terminal."""

    def do_GET(self) -> None:
        raise NotImplementedError

    def do_HEAD(self) -> None:
        self.do_GET()

    def note(self, where: list[Asked]) -> Asked:
        asked = Asked(self.command, unquote(urlsplit(self.path).path), self.headers)
        where.append(asked)
        return asked

    def reply(self, status: int, body: bytes, headers: dict[str, str] | None = None, drop: int | None = None) -> None:
        """The connection is broken off after `drop` bytes of the body."""
        self.send_response(status)
        for key, value in ({"Content-Length": str(len(body))} | (headers or {})).items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(b"" if self.command == "HEAD" else body[:drop])
        self.close_connection = self.close_connection or drop is not None
        if drop is not None and self.hub.reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def contents(self, asked: Asked, data: bytes, headers: dict[str, str], drop: int | None = None) -> None:
        wanted = self.headers.get("Range")
        if wanted is None or not self.hub.ranges:
            asked.sent = len(data[:drop])
            self.reply(200, data, headers, drop)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-"))
        if start >= len(data):
            self.reply(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            return
        headers |= {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        asked.sent = len(data[start:][:drop])
        self.reply(206, data[start:], headers, drop)


class HubHandler(Handler):
    def do_GET(self) -> None:
        hub, asked = self.hub, self.note(self.hub.asked)
        if hub.page or hub.down:
            self.reply(200 if hub.page else 503, hub.page)
        elif asked.path.startswith("/api/models/"):
            name, _, revision = asked.path.removeprefix("/api/models/").partition("/revision/")
            self.listing(name, revision)
        else:
            name, _, rest = asked.path.removeprefix("/").partition("/resolve/")
            self.resolve(asked, name, *rest.split("/", 1))

    def listing(self, name: str, revision: str) -> None:
        repo = self.allowed(name, revision)
        if repo is not None:
            assert parse_qs(urlsplit(self.path).query) == {"blobs": ["true"]}
            self.reply(200, json.dumps(repo.listing(name)).encode())

    def resolve(self, asked: Asked, name: str, revision: str, file: str) -> None:
        repo = self.allowed(name, revision)
        if repo is None:
            return
        if repo.gated and self.given() != self.hub.token:
            self.reply(403 if self.given() else 401, b"", {"X-Error-Code": "GatedRepo"})
        elif file not in repo.files:
            self.reply(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": repo.commit})
        elif is_lfs(file):
            data, commit = repo.files[file], {"X-Repo-Commit": repo.commit, "Accept-Ranges": "bytes"}
            linked = {"X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{sha256(data)}"'}
            self.reply(302, b"", {"Location": f"{self.hub.storage}/{name}/{file}"} | commit | linked)
        else:
            data = repo.files[file]
            etag = {"ETag": f'"{git_id(data)}"', "X-Repo-Commit": repo.commit, "Accept-Ranges": "bytes"}
            self.contents(asked, data, etag)

    def given(self) -> str:
        return self.headers.get("Authorization", "").removeprefix("Bearer ")

    def allowed(self, name: str, revision: str) -> Repo | None:
        repo = self.hub.repos.get(name)
        if self.given() not in ("", self.hub.token, self.hub.without_access):
            self.reply(401, b"", {"X-Error-Message": "Invalid credentials in Authorization header"})
        elif repo is None or (repo.private and not self.given()):
            self.reply(404 if self.given() else 401, b"", {"X-Error-Code": "RepoNotFound"})
        elif revision not in ("main", "v1.0", repo.commit):
            self.reply(404, b"", {"X-Error-Code": "RevisionNotFound"})
        else:
            return repo
        return None


class StorageHandler(Handler):
    def do_GET(self) -> None:
        asked = self.note(self.hub.stored)
        late = self.hub.busy > 0 and not self.hub.drop_after
        self.hub.busy -= late
        if self.hub.down or late:
            self.reply(503, b"")
            return
        name, _, file = asked.path.removeprefix("/").rpartition("/")
        drop = self.hub.drop_after.pop(0) if self.hub.drop_after else None
        self.contents(asked, self.hub.repos[name].files[file], {"Accept-Ranges": "bytes"}, drop)


@contextmanager
def serving() -> Iterator[Callable[[], Hub]]:
    """A hub and its storage, until the end of the block; every call empties it and forgets what it was asked."""
    servers = []
    handlers = [type(kind.__name__, (kind,), {}) for kind in (HubHandler, StorageHandler)]
    for handler in handlers:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        servers.append(server)
    address, storage = (f"http://127.0.0.1:{server.server_port}" for server in servers)

    def fresh() -> Hub:
        hub = Hub(address, storage)
        for handler in handlers:
            handler.hub = hub  # type: ignore[attr-defined]
        return hub

    try:
        yield fresh
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
