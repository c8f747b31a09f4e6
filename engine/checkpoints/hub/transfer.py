"""One file from the hub to the cache, continued where an earlier try ended.

huggingface_hub 2.4.0 throws a part away when its own download ends early (its temporary file is unique to the call),
so the bytes are moved here: appended to `<digest>.incomplete`, and moved to `<digest>` when the digest is right.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from filelock import FileLock, Timeout

from engine.checkpoints.hub.ask import answer, file_url, host
from engine.checkpoints.hub.name import HubName
from engine.checkpoints.hub.store import File, Store, length

if TYPE_CHECKING:
    from hashlib import _Hash

TRIES = 5  # in a row that bring nothing
PAUSE = 1.0  # seconds before the next
BLOCK = 2**20  # bytes


def transfer(name: HubName, store: Store, commit: str, file: File) -> Generator[int]:
    """Yields the bytes of `file` that are here, until it has its name in the snapshot of `commit`.

    While another session fetches the same file, that one's progress. Closing this keeps what has come. Raises
    ConnectionError where the hub cannot be reached or keeps breaking off, ValueError where what came is not what
    was announced.
    """
    partial = store.partial(commit, file)
    for folder in (partial.parent, store.locks):
        folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(store.lock(commit, file), thread_local=False)
    yield from _turn(lock, partial)
    try:
        if not store.has(commit, file):
            yield from _whole(name, file, partial, file_url(name, commit, file.name))
            os.replace(partial, store.blob(commit, file))
        store.link(commit, file)
        yield file.size
    finally:
        lock.release()


def _turn(lock: FileLock, partial: Path) -> Iterator[int]:
    """Wait for whoever has the lock."""
    while not lock.is_locked:
        try:
            lock.acquire(timeout=PAUSE)
        except Timeout:
            yield length(partial)


def _whole(name: HubName, file: File, partial: Path, url: str) -> Iterator[int]:
    """Until `partial` is all of the file."""
    with partial.open("a+b") as out:
        part = Part(file, out)
        yield part.done
        tries = 0
        while part.done < file.size and not part.ends:
            begun = part.done
            why = "it was closed early"
            try:
                yield from part.continued(name, url)
            except ConnectionError as error:
                why = str(error).removesuffix(".")
            tries = tries + 1 if part.done <= begun else 0
            if tries == TRIES:
                raise ConnectionError(
                    f"The connection to {host()} broke off at {part.done} of {file.size} bytes of {file.name} ({why}); "
                    "ask again, and it continues from there."
                )
            if part.done < file.size:
                time.sleep(PAUSE)
        wrong = part.fault()
    if wrong:
        partial.unlink()
        raise ValueError(f"{file.name} of {name.repo} must {wrong}; it was deleted, fetch it again.")


class Part:
    """What of a file has come: its bytes in `out`, their number and their hash."""

    def __init__(self, file: File, out: IO[bytes]) -> None:
        self.file, self.out = file, out
        self.hash: _Hash = file.hash()
        self.done = 0
        self.ends = False  # no more is to be had
        out.seek(0)
        while block := out.read(BLOCK):
            self.hash.update(block)
            self.done += len(block)

    def continued(self, name: HubName, url: str) -> Iterator[int]:
        """One request, for what is missing; from the beginning where the server only knows whole files."""
        with answer(name, url, start=self.done) as response:
            if response.status_code == 416:
                self.ends = True
                return
            first = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
            if response.status_code == 206 and first != str(self.done):
                raise ConnectionError(f"asked for byte {self.done} and on, it sends from {first!r}")
            if response.status_code != 206:
                self.restart()
            for piece in response.iter_bytes():
                self.add(piece)
                yield min(self.done, self.file.size)
                if self.done > self.file.size:
                    return

    def restart(self) -> None:
        self.out.truncate(0)
        self.hash, self.done = self.file.hash(), 0

    def add(self, piece: bytes) -> None:
        self.out.write(piece)
        self.hash.update(piece)
        self.done += len(piece)

    def fault(self) -> str:
        """What the bytes must be and are not; empty where they are."""
        if self.done != self.file.size:
            return f"be {self.file.size} bytes long as announced, got {self.done if self.ends else 'more'}"
        if self.file.digest not in (None, self.hash.hexdigest()):
            return f"have the announced digest {self.file.digest}, got {self.hash.hexdigest()}"
        return ""
