"""One file from a hub to this machine: requests, the cache, and refusals in one sentence.

Requests, retries and ranges are huggingface_hub's, with the proxies and certificates that it knows. Files lie in the
cache that it shares with other programs: `blobs/<digest>`, a link to each in `snapshots/<commit>/`, the commit of a
branch or tag in `refs/<revision>`. Its `hf_hub_download` deletes what has come when a transfer ends early (2.4.0), and
its `http_get` reports every 10 MiB, so files are received here. The headers are made here too: its own say what is
installed, for which it asks its default host, whatever HF_ENDPOINT says.

HF_ENDPOINT, HF_TOKEN, HF_HUB_OFFLINE, HF_HOME and HF_HUB_CACHE are read at every call; huggingface_hub reads them once.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import get_ident
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import urlsplit

import httpx2
from filelock import FileLock, Timeout
from huggingface_hub import constants, hf_hub_url, is_offline_mode
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import repo_folder_name
from huggingface_hub.utils import hf_raise_for_status, http_stream_backoff

if TYPE_CHECKING:
    from hashlib import _Hash

BLOCK = 2**16  # bytes between two reports; of 10 MiB, a slow line makes ten seconds
PREFIX = "hub:"
BRANCH = "main"
COMMIT = re.compile(r"[0-9a-f]{40}")
TRUE = {"1", "ON", "YES", "TRUE"}
TRIES = 5  # answers in a row that bring nothing
PAUSE = 1.0  # seconds before the next try, and between two looks at another session's download


@dataclass(frozen=True)
class HubName:
    """Repository and revision (branch, tag or commit) of a checkpoint; `quant` says which of several GGUF files."""

    repo: str
    revision: str = BRANCH
    quant: str = ""

    def __str__(self) -> str:
        said = f"{PREFIX}{self.repo}" + (f"@{self.revision}" if self.revision != BRANCH else "")
        return said + (f":{self.quant}" if self.quant else "")


@dataclass(frozen=True)
class File:
    """File of a repository: `size` bytes, of which `local_bytes` need not be fetched.

    `digest`, where the hub gives one, is the sha256 of a large file (git LFS), otherwise git's own: the sha1 of
    "blob <size>\\0" and the contents.
    """

    name: str
    size: int
    digest: str | None
    local_bytes: int = 0

    def new_hash(self) -> _Hash:
        if self.digest is not None and len(self.digest) == 40:
            return hashlib.sha1(f"blob {self.size}\0".encode(), usedforsecurity=False)
        return hashlib.sha256()


@dataclass(frozen=True)
class RepoCache:
    """Part of huggingface_hub's cache that holds one repository."""

    folder: Path
    locks: Path

    def snapshot(self, commit: str) -> Path:
        return self.folder / "snapshots" / commit

    def blob(self, commit: str, file: File) -> Path:
        unnamed = hashlib.sha256(f"{commit}/{file.name}".encode()).hexdigest()
        return self.folder / "blobs" / (file.digest or unnamed)

    def incomplete(self, commit: str, file: File) -> Path:
        blob = self.blob(commit, file)
        return blob.with_name(f"{blob.name}.incomplete")

    def lock(self, commit: str, file: File) -> FileLock:
        return FileLock(self.locks / f"{self.blob(commit, file).name}.lock", thread_local=False)

    def has(self, commit: str, file: File) -> bool:
        return any(is_whole(path, file) for path in (self.snapshot(commit) / file.name, self.blob(commit, file)))

    def local_bytes(self, commit: str, file: File) -> int:
        return file.size if self.has(commit, file) else min(file_size(self.incomplete(commit, file)), file.size)

    def link(self, commit: str, file: File) -> None:
        """Give a blob its name in the snapshot."""
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

    def read_ref(self, revision: str) -> str | None:
        """Commit that `revision` was at when it was last fetched."""
        if COMMIT.fullmatch(revision):
            return revision
        ref = self.folder / "refs" / revision
        commit = ref.read_text(encoding="ascii", errors="replace").strip() if ref.is_file() else ""
        return commit if COMMIT.fullmatch(commit) else None

    def write_ref(self, revision: str, commit: str) -> None:
        """Remember the commit of a revision once its snapshot is whole: without a network, this is how it is found."""
        if revision == commit:
            return
        ref = self.folder / "refs" / revision
        ref.parent.mkdir(parents=True, exist_ok=True)
        temporary = ref.with_name(f".{ref.name}.{os.getpid()}-{get_ident()}")
        temporary.write_text(commit, encoding="ascii")
        os.replace(temporary, ref)


def repo_cache(repo: str) -> RepoCache:
    cache, folder = cache_folder(), repo_folder_name(repo_id=repo, repo_type="model")
    return RepoCache(cache / folder, cache / ".locks" / folder)


def cache_folder() -> Path:
    """Folder that the environment names now; huggingface_hub reads it once, on import."""
    cache, home = os.environ.get("HF_HUB_CACHE"), os.environ.get("HF_HOME")
    folder = cache or (os.path.join(home, "hub") if home else constants.HF_HUB_CACHE)
    return Path(os.path.expandvars(folder)).expanduser().resolve()


def is_whole(path: Path, file: File) -> bool:
    return path.is_file() and path.stat().st_size == file.size


def file_size(path: Path) -> int:
    """Size in bytes; 0 where there is no file."""
    return path.stat().st_size if path.is_file() else 0


def fetch_file(
    name: HubName, cache: RepoCache, commit: str, file: File, report: Callable[[int], object] | None = None
) -> None:
    """Bring one file into the snapshot of `commit`, calling `report` with the bytes that are on this machine.

    Appends to `<digest>.incomplete`, which becomes `<digest>` once that is right. Raises ConnectionError where the hub
    cannot be reached or keeps breaking off, ValueError where the contents are not what was announced.
    """
    report = report or (lambda count: None)
    incomplete = cache.incomplete(commit, file)
    for folder in (incomplete.parent, cache.locks):
        folder.mkdir(parents=True, exist_ok=True)
    lock = cache.lock(commit, file)
    while not lock.is_locked:
        try:
            lock.acquire(timeout=PAUSE)
        except Timeout:  # another session fetches it
            report(file_size(incomplete))
    try:
        if not cache.has(commit, file):
            with incomplete.open("ab") as out:
                receive(name, commit, file, out, report)
            check_contents(name, file, incomplete)
            os.replace(incomplete, cache.blob(commit, file))
        cache.link(commit, file)
        report(file.size)
    finally:
        lock.release()


def receive(name: HubName, commit: str, file: File, out: BinaryIO, report: Callable[[int], object]) -> None:
    """Append the missing bytes of a file to `out`, until there are `file.size` or the server has no more."""
    url = hf_hub_url(name.repo, file.name, revision=commit, endpoint=endpoint())
    idle = 0
    while (start := out.tell()) < file.size:
        try:
            return receive_rest(url, file.size, out, report)
        except (HfHubHTTPError, httpx2.HTTPError) as error:
            if isinstance(error, HfHubHTTPError) and error.response.status_code == 416:
                return  # the file ends before `start`
            problem = translate_error(error, name)
        if not isinstance(problem, ConnectionError):
            raise problem
        idle = idle + 1 if out.tell() <= start else 0
        if idle == TRIES:
            raise ConnectionError(
                f"The connection to {host()} broke off at {out.tell()} of {file.size} bytes of {file.name} "
                f"({str(problem).removesuffix('.')}); ask again, and it continues from there."
            )
        time.sleep(PAUSE)


def receive_rest(url: str, size: int, out: BinaryIO, report: Callable[[int], object]) -> None:
    """Append what the server has of a file from the end of `out` on; what exceeds `size` bytes ends the transfer."""
    start = out.tell()
    sent = headers() | {"accept-encoding": "identity"} | ({"range": f"bytes={start}-"} if start else {})
    given: Any = {"headers": sent, "timeout": constants.HF_HUB_DOWNLOAD_TIMEOUT}
    with http_stream_backoff("GET", url, retry_on_exceptions=(), retry_on_status_codes=(408, 429), **given) as response:
        hf_raise_for_status(response)
        if start and response.status_code == 200:  # it sends all of it
            out.truncate(0)
            out.seek(0)
        for chunk in response.iter_bytes(BLOCK):
            report(min(out.tell(), size))
            if out.tell() > size:
                return
            out.write(chunk)


def check_contents(name: HubName, file: File, path: Path) -> None:
    """Delete a file that is not what was announced, and raise ValueError."""
    length = file_size(path)
    with path.open("rb") as contents:
        digest = hashlib.file_digest(contents, file.new_hash).hexdigest()
    if length != file.size:
        expected = f"be {file.size} bytes long as announced, got {length if length < file.size else 'more'}"
    elif file.digest not in (None, digest):
        expected = f"have the announced digest {file.digest}, got {digest}"
    else:
        return
    path.unlink()
    raise ValueError(f"{file.name} of {name.repo} must {expected}; it was deleted, fetch it again.")


def endpoint() -> str:
    """Address of the hub, without a slash at its end."""
    address = (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    try:
        parts = urlsplit(address)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"HF_ENDPOINT must be an address such as https://hub.example, got {address!r}; correct it.")
    return address


def host() -> str:
    """Host and port of the hub, without the name and password that an address may hold."""
    return urlsplit(endpoint()).netloc.rpartition("@")[2]


def is_offline() -> bool:
    return is_offline_mode() or os.environ.get("HF_HUB_OFFLINE", "").upper() in TRUE


def token() -> str:
    """HF_TOKEN, never a login stored on this machine: whoever may open Loupe would use it."""
    text = os.environ.get("HF_TOKEN", "").strip()
    if not (text.isascii() and text.isprintable()):
        raise PermissionError("HF_TOKEN must be a token of the hub, and holds characters that none has; set it again.")
    return text


def headers() -> dict[str, str]:
    return {"user-agent": "loupe"} | ({"authorization": f"Bearer {token()}"} if token() else {})


def translate_error(error: Exception, name: HubName) -> Exception:
    """Make the builtin exception, of one sentence, that stands for one of huggingface_hub or its HTTP client.

    A hub answers 401 to one without a token for what does not exist too, so as not to tell what does.
    """
    if not isinstance(error, HfHubHTTPError):
        return ConnectionError(
            f"{host()} cannot be reached ({str(error) or type(error).__name__}); check the network and HF_ENDPOINT."
        )
    status = error.response.status_code
    if isinstance(error, RevisionNotFoundError):
        return FileNotFoundError(
            f"{name.repo} has no revision {name.revision!r}; name one of its branches, tags or commits."
        )
    if isinstance(error, RemoteEntryNotFoundError):
        return FileNotFoundError(f"{host()} lists a file of {name.repo} that it does not have; ask for it again later.")
    if isinstance(error, GatedRepoError):
        less = ", which the account of the present one has not" if token() else ""
        return PermissionError(
            f"{name.repo} is gated: ask for access at {host()}/{name.repo}{less}, and set HF_TOKEN to a token "
            "of the account that has it."
        )
    if isinstance(error, DisabledRepoError):
        return PermissionError(f"{host()} has disabled {name.repo}; choose another checkpoint.")
    if status == 401 and token():
        return PermissionError(f"{host()} does not accept the token in HF_TOKEN for {name.repo}; set a valid one.")
    if isinstance(error, RepositoryNotFoundError) or status in (401, 404):
        remedy = "a token in HF_TOKEN that may read it" if token() else "HF_TOKEN to a token that may read it"
        return FileNotFoundError(f"{host()} has no {name.repo}, or it is private: check the name, or set {remedy}.")
    if status == 403:
        return PermissionError(f"{host()} does not let us read {name.repo}; set HF_TOKEN to a token that may read it.")
    if status in (408, 429) or status >= 500:
        return ConnectionError(f"{host()} answers {status} just now; ask again later.")
    return ValueError(f"{host()} answers {status} when asked for {name.repo}; correct HF_ENDPOINT.")
