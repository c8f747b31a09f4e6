"""What a download would bring, before it begins."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import ModelInfo
from huggingface_hub.hf_api import RepoSibling

from engine.checkpoints.hub.ask import host, listing, offline
from engine.checkpoints.hub.choose import check_names, choose
from engine.checkpoints.hub.name import HubName
from engine.checkpoints.hub.store import COMMIT, DIGEST, File, Store, store_of
from engine.checkpoints.hub.transfer import transfer

LARGEST_INDEX = 64 * 2**20  # bytes; the index of a model with 100,000 tensors takes some 10 MiB
LICENCE = "license:"


@dataclass(frozen=True)
class Download:
    """A checkpoint at one commit of its repository; `folder` is where it is once it has been fetched.

    `gated`: its makers want to be asked for access first. Not `asked`: without a network this is what was fetched
    before, and the hub may have a newer one; licence, gate and privacy are then unknown ("", False).
    """

    name: HubName
    commit: str
    folder: Path
    files: tuple[File, ...]
    licence: str = ""
    gated: bool = False
    private: bool = False
    asked: bool = True

    @property
    def bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def missing(self) -> int:
        """Bytes still to come over the network."""
        return self.bytes - sum(file.here for file in self.files)


def plan(name: HubName) -> Download:
    """Asks the hub; offline, or where it cannot be reached, this machine's cache. Fetches at most an index of shards.

    Raises FileNotFoundError where there is no such repository, revision or (offline) copy of it, PermissionError for
    one that the hub does not show, ConnectionError where it cannot be reached, and ValueError for one that is no
    checkpoint, or whose listing cannot be trusted.
    """
    if offline():
        return _planned_offline(name)
    try:
        info = listing(name)
    except ConnectionError as error:
        try:
            return _planned_offline(name)
        except FileNotFoundError:
            raise error from None
    return _planned(name, info)


def _planned(name: HubName, info: ModelInfo) -> Download:
    commit, store = info.sha, store_of(name.repo)
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        raise ValueError(f"{host()} must say which commit {name} is at, got {commit!r}; correct HF_ENDPOINT.")
    check_names([sibling.rfilename for sibling in info.siblings or []], name.repo)
    siblings = {sibling.rfilename: sibling for sibling in info.siblings or []}

    def measured(file: str) -> File:
        return _measured(siblings[file], store, commit)

    def index(file: str) -> Path:
        return _index(name, store, commit, measured(file))

    return Download(
        name=name,
        commit=commit,
        folder=store.snapshot(commit),
        files=tuple(map(measured, choose(siblings, name.repo, index))),
        licence=_licence(info),
        gated=bool(info.gated),
        private=bool(info.private),
    )


def _measured(sibling: RepoSibling, store: Store, commit: str) -> File:
    size, digest = (sibling.lfs.size, sibling.lfs.sha256) if sibling.lfs else (sibling.size, sibling.blob_id)
    if type(size) is not int or size < 0 or (digest is not None and not DIGEST.fullmatch(str(digest))):
        raise ValueError(
            f"{host()} must give {sibling.rfilename} a size and a digest, got {size!r} and {digest!r}; "
            "correct HF_ENDPOINT."
        )
    file = File(sibling.rfilename, size, digest)
    return File(file.name, size, digest, store.here(commit, file))


def _index(name: HubName, store: Store, commit: str, file: File) -> Path:
    if file.size > LARGEST_INDEX:
        raise ValueError(
            f"{file.name} of {name.repo} must be an index of at most {LARGEST_INDEX} bytes, got {file.size}; "
            "do not trust this checkpoint."
        )
    for _ in transfer(name, store, commit, file):
        pass
    return store.snapshot(commit) / file.name


def _licence(info: ModelInfo) -> str:
    """By its short name; where that is "other", by what its makers call it."""
    tags: Iterable[object] = info.tags if isinstance(info.tags, list) else ()
    found = (tag.removeprefix(LICENCE) for tag in tags if isinstance(tag, str) and tag.startswith(LICENCE))
    short = next(found, "")
    return str(getattr(info.card_data, "license_name", None) or short) if short == "other" else short


def _planned_offline(name: HubName) -> Download:
    store = store_of(name.repo)
    commit = store.commit(name.revision)
    folder = store.snapshot(commit) if commit else store.folder / "snapshots"
    names = [path.name for path in folder.iterdir() if path.is_file()] if commit and folder.is_dir() else []
    try:
        chosen = choose(names, name.repo, lambda index: folder / index)
    except ValueError:
        raise FileNotFoundError(
            f"{name} has not been fetched whole to this machine, and there is no network (HF_HUB_OFFLINE, or none "
            "that answers); fetch it once with one."
        ) from None
    sizes = ((file, (folder / file).stat().st_size) for file in chosen)
    files = tuple(File(file, size, None, size) for file, size in sizes)
    return Download(name, commit or "", folder, files, asked=False)
