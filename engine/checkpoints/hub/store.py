"""Where the hub's files lie on this machine: huggingface_hub's cache, which every program here shares.

A repository has its files in `blobs/`, named by their digests, `snapshots/<commit>/` with a link to each by its name,
and `refs/<revision>` with the commit that a branch or tag was at.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from huggingface_hub import constants
from huggingface_hub.file_download import repo_folder_name

if TYPE_CHECKING:
    from hashlib import _Hash

COMMIT = re.compile(r"[0-9a-f]{40}")
DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class File:
    """`size` in bytes, of which `here` are on this machine. `digest` is that of the contents, where the hub gives one:
    sha256 of a large file (git LFS), otherwise git's own, sha1 of "blob <size>\\0" and the contents."""

    name: str
    size: int
    digest: str | None
    here: int = 0

    def hash(self) -> _Hash:
        """Of no contents yet."""
        if self.digest is not None and len(self.digest) == 40:
            return hashlib.sha1(f"blob {self.size}\0".encode(), usedforsecurity=False)
        return hashlib.sha256()


@dataclass(frozen=True)
class Store:
    """One repository's part of the cache."""

    folder: Path
    locks: Path

    def blob(self, commit: str, file: File) -> Path:
        unnamed = hashlib.sha256(f"{commit}/{file.name}".encode()).hexdigest()
        return self.folder / "blobs" / (file.digest or unnamed)

    def partial(self, commit: str, file: File) -> Path:
        blob = self.blob(commit, file)
        return blob.with_name(f"{blob.name}.incomplete")

    def lock(self, commit: str, file: File) -> Path:
        return self.locks / f"{self.blob(commit, file).name}.lock"

    def snapshot(self, commit: str) -> Path:
        return self.folder / "snapshots" / commit

    def has(self, commit: str, file: File) -> bool:
        places = (self.snapshot(commit) / file.name, self.blob(commit, file))
        return any(is_whole(place, file) for place in places)

    def here(self, commit: str, file: File) -> int:
        """Bytes that need not be fetched."""
        return file.size if self.has(commit, file) else min(length(self.partial(commit, file)), file.size)

    def link(self, commit: str, file: File) -> None:
        """Give the file its name in the snapshot."""
        path, blob = self.snapshot(commit) / file.name, self.blob(commit, file)
        if is_whole(path, file):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        try:
            path.symlink_to(os.path.relpath(blob, path.parent))
        except FileExistsError:
            return  # another session was faster
        except OSError:  # a file system without links
            os.replace(blob, path)

    def commit(self, revision: str) -> str | None:
        """That `revision` was at when it was last fetched."""
        if COMMIT.fullmatch(revision):
            return revision
        ref = self.folder / "refs" / revision
        found = ref.read_text(encoding="ascii", errors="replace").strip() if ref.is_file() else ""
        return found if COMMIT.fullmatch(found) else None

    def remember(self, revision: str, commit: str) -> None:
        """Only once a snapshot is whole: without a network, this is how it is found."""
        if revision == commit:
            return
        ref = self.folder / "refs" / revision
        ref.parent.mkdir(parents=True, exist_ok=True)
        partial = ref.with_name(f".{ref.name}.{os.getpid()}")
        partial.write_text(commit, encoding="ascii")
        os.replace(partial, ref)


def store_of(repo: str) -> Store:
    cache = cache_folder()
    folder = repo_folder_name(repo_id=repo, repo_type="model")
    return Store(cache / folder, cache / ".locks" / folder)


def cache_folder() -> Path:
    """As the environment says now; huggingface_hub read it when it was imported."""
    named, home = os.environ.get("HF_HUB_CACHE"), os.environ.get("HF_HOME")
    cache = named or (os.path.join(home, "hub") if home else constants.HF_HUB_CACHE)
    return Path(os.path.expandvars(cache)).expanduser().resolve()


def is_whole(path: Path, file: File) -> bool:
    return path.is_file() and path.stat().st_size == file.size


def length(path: Path) -> int:
    """In bytes; 0 for what is not there."""
    return path.stat().st_size if path.is_file() else 0
