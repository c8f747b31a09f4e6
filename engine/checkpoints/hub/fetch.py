"""Bringing what was planned to this machine."""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from engine.checkpoints.hub.name import parse
from engine.checkpoints.hub.plan import Download, plan
from engine.checkpoints.hub.store import cache_folder, store_of
from engine.checkpoints.hub.transfer import transfer

MARGIN = 2**24  # bytes of disk left free


@dataclass(frozen=True)
class Progress:
    """Of the whole download, at `file`; bytes that were here before count as done."""

    file: str
    done_bytes: int
    total_bytes: int


def fetch(download: Download, most: int | None = None) -> Generator[Progress]:
    """Until the checkpoint is in `download.folder`; closed earlier, the next one continues where this one stopped.

    Refuses at once, with ValueError, more than `most` bytes or more than the disk has room for. On the way raises as
    `plan` does, and ValueError for a file that is not what was announced.
    """
    check_room(download, most)
    return _fetched(download)


def folder_of(text: str, most: int | None = None) -> Path:
    """Of the checkpoint that `text` names, fetched where it is not here yet."""
    download = plan(parse(text))
    for _ in fetch(download, most):
        pass
    return download.folder


def check_room(download: Download, most: int | None) -> None:
    if most is not None and download.missing > most:
        raise ValueError(
            f"Expected a download of at most {megabytes(most)}, got {megabytes(download.missing)} for "
            f"{download.name}; raise LOUPE_MAX_DOWNLOAD_MIB."
        )
    cache = cache_folder()
    free = shutil.disk_usage(next(path for path in (cache, *cache.parents) if path.exists())).free
    if download.missing and download.missing + MARGIN > free:
        raise ValueError(
            f"{download.name} needs {megabytes(download.missing)} in {cache}, and {megabytes(free)} are free; "
            "make room, or name another place in HF_HOME."
        )


def megabytes(bytes: int) -> str:
    return f"{bytes / 1e6:,.1f} MB"


def _fetched(download: Download) -> Generator[Progress]:
    store, done = store_of(download.name.repo), 0
    for file in download.files if download.asked else ():
        with closing(transfer(download.name, store, download.commit, file)) as steps:
            for here in steps:
                yield Progress(file.name, done + here, download.bytes)
        done += file.size
    if download.asked:
        store.remember(download.name.revision, download.commit)
    yield Progress(download.files[-1].name, download.bytes, download.bytes)
