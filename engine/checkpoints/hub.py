"""Checkpoints of a hub: `parse` reads a name, `plan` lists files and sizes, `fetch` downloads them.

`download_folder(text)` does all three; its folder is what `engine.load` opens.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import quote

import httpx2
from huggingface_hub import ModelInfo, constants
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from huggingface_hub.hf_api import RepoSibling
from huggingface_hub.utils import get_session, hf_raise_for_status, validate_repo_id

from engine.checkpoints.gguf.header import SPLIT
from engine.checkpoints.hub_transfer import (
    BRANCH,
    COMMIT,
    PREFIX,
    File,
    HubName,
    RepoCache,
    cache_folder,
    endpoint,
    fetch_file,
    headers,
    host,
    is_offline,
    repo_cache,
    translate_error,
)
from engine.checkpoints.locate import BESIDE, WEIGHTS, is_part_of_module
from engine.checkpoints.weights import read_json

REVISION = re.compile(r"[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*", re.ASCII)
LONGEST_REVISION = 200  # characters; a revision becomes the name of a file
DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
INDEX = ".index.json"
MODULES = "modules.json"
GGUF, USUAL = ".gguf", "Q4_K_M"  # of several GGUF files the one that llama.cpp takes too
QUANT = re.compile(r"[A-Za-z0-9_.-]{1,80}")
LARGEST_INDEX = 64 * 2**20  # bytes; the index of a model with 100,000 tensors takes some 10 MiB
SMALL = (*BESIDE, "tokenizer.model", "spiece.model", "spm.model", "sentencepiece.bpe.model", "source.spm", "target.spm")
LICENCE = "license:"
MARGIN = 2**24  # bytes of disk left free
NOT_A_HUB = (ValueError, TypeError, LookupError, AttributeError, RecursionError)  # raised on reading a strange answer


@dataclass(frozen=True)
class Download:
    """Files of a checkpoint at one commit of its repository, which `folder` holds once they are fetched.

    `gated`: access must be asked for first. `online` is False for a plan made without a network from what was fetched
    before: the hub may have a newer commit; licence, gate and privacy are then unknown ("", False).
    """

    name: HubName
    commit: str
    folder: Path
    files: tuple[File, ...]
    licence: str = ""
    gated: bool = False
    private: bool = False
    online: bool = True

    @property
    def opened(self) -> Path:
        """The place that is opened: the folder, or the first of its GGUF files."""
        first = next((file.name for file in self.files if file.name.endswith(GGUF)), None)
        return self.folder if first is None else self.folder / first

    @property
    def total_bytes(self) -> int:
        return sum(file.size for file in self.files)

    @property
    def missing_bytes(self) -> int:
        """Bytes still to come over the network."""
        return self.total_bytes - sum(file.local_bytes for file in self.files)


@dataclass(frozen=True)
class Progress:
    """Bytes of the whole download that are on this machine, while `file` is fetched."""

    file: str
    done_bytes: int
    total_bytes: int


Report = Callable[[Progress], object]


def parse(text: str) -> HubName:
    """Read `hub:org/name`, `hub:org/name@revision`, or, of a repository of GGUF files, `hub:org/name:Q4_K_M`.

    Raises ValueError for anything but a plain name: it becomes part of an address and of a path.
    """
    named, colon, quant = text.removeprefix(PREFIX).partition(":")
    repo, at, revision = named.partition("@")
    try:
        validate_repo_id(repo)
        valid = text.startswith(PREFIX) and (not colon or bool(QUANT.fullmatch(quant)))
    except HFValidationError:
        valid = False
    if not valid or (at and (len(revision) > LONGEST_REVISION or not REVISION.fullmatch(revision))):
        raise ValueError(
            f"Expected hub:org/name, hub:org/name@revision or hub:org/name:Q4_K_M, of letters, digits and . _ - alone, "
            f"got {text[:200]!r}; copy the name as the hub shows it."
        )
    return HubName(repo, revision or BRANCH, quant)


def plan(name: HubName) -> Download:
    """List what a download brings; offline, or where the hub cannot be reached, what this machine's cache holds.

    Fetches at most an index of shards. Raises FileNotFoundError where there is no such repository, revision or
    (offline) copy of it, PermissionError for one that the hub does not show, ConnectionError where it cannot be
    reached, ValueError for one that is no checkpoint, or whose listing cannot be trusted.
    """
    if is_offline():
        return plan_offline(name)
    try:
        info = fetch_listing(name)
    except ConnectionError as error:
        try:
            return plan_offline(name)
        except FileNotFoundError:
            raise error from None
    return plan_online(name, info)


def fetch(download: Download, most: int | None = None, report: Report | None = None) -> None:
    """Download the missing files, calling `report` as bytes come.

    What `report` raises ends the download; what has come is kept, and the next call continues from there. Two sessions
    fetch a file once: the second one reports the first one's progress.

    Refuses at once, with ValueError, more than `most` bytes or more than the disk has room for. On the way raises as
    `plan` does, and ValueError for a file that is not what was announced.
    """
    check_room(download, most)
    total, done = download.total_bytes, 0

    def tell(file: str, count: int) -> None:
        if report is not None:
            report(Progress(file, done + count, total))

    if download.online:
        cache = repo_cache(download.name.repo)
        for file in download.files:
            fetch_file(download.name, cache, download.commit, file, partial(tell, file.name))
            done += file.size
        cache.write_ref(download.name.revision, download.commit)
    done = total
    tell(download.files[-1].name, 0)


def download_folder(text: str, most: int | None = None) -> Path:
    """Folder of the checkpoint that `text` names, or its GGUF file, fetched where it is not on this machine yet."""
    download = plan(parse(text))
    fetch(download, most)
    return download.opened


def cached_folder(name: HubName) -> Path | None:
    """Folder of what was fetched of a checkpoint, without asking a network; it need not be whole."""
    cache = repo_cache(name.repo)
    commit = cache.read_ref(name.revision)
    folder = cache.snapshot(commit) if commit else None
    return folder if folder is not None and folder.is_dir() else None


def cached_checkpoint(name: HubName) -> Path | None:
    """Folder of a checkpoint that was fetched, or its GGUF file, as `Download.opened`."""
    folder = cached_folder(name)
    if folder is None or (any((folder / one).is_file() for one in WEIGHTS) and not name.quant):
        return folder
    try:
        parts = choose_gguf([path.name for path in folder.iterdir()], name)
    except ValueError:
        return None
    return folder / parts[0] if parts else folder


def fetch_listing(name: HubName) -> ModelInfo:
    """Ask the hub about a repository, with its files' sizes and digests. Raises as `plan` does."""
    asked = f"{endpoint()}/api/models/{name.repo}/revision/{quote(name.revision, safe='')}"
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    try:
        response = get_session().get(asked, headers=headers(), timeout=timeout, params={"blobs": True})
        hf_raise_for_status(response)
        return ModelInfo(**response.json())
    except (HfHubHTTPError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise translate_error(error, name) from None
    except NOT_A_HUB as error:
        raise ValueError(
            f"{host()} must answer as a hub does, and its answer about {name.repo} does not read "
            f"({type(error).__name__}); correct HF_ENDPOINT."
        ) from None


def plan_online(
    name: HubName, info: ModelInfo, choose: Callable[[Collection[str]], Collection[str]] | None = None
) -> Download:
    """`choose` gives the files to fetch of all names, in place of a checkpoint's."""
    commit, cache = info.sha, repo_cache(name.repo)
    if not isinstance(commit, str) or not COMMIT.fullmatch(commit):
        raise ValueError(f"{host()} must say which commit {name} is at, got {commit!r}; correct HF_ENDPOINT.")
    check_names([sibling.rfilename for sibling in info.siblings or []], name.repo)
    siblings = {sibling.rfilename: sibling for sibling in info.siblings or []}

    def fetch_index(file: str) -> Path:
        index = read_sibling(siblings[file], cache, commit)
        if index.size > LARGEST_INDEX:
            raise ValueError(
                f"{file} of {name.repo} must be an index of at most {LARGEST_INDEX} bytes, got {index.size}; "
                "do not trust this checkpoint."
            )
        fetch_file(name, cache, commit, index)
        return cache.snapshot(commit) / file

    chosen = choose_files(siblings, name, fetch_index) if choose is None else choose(siblings)
    return Download(
        name,
        commit,
        cache.snapshot(commit),
        files=tuple(read_sibling(siblings[file], cache, commit) for file in chosen),
        licence=read_licence(info),
        gated=bool(info.gated),
        private=bool(info.private),
    )


def plan_offline(name: HubName) -> Download:
    folder = cached_folder(name)
    names = [] if folder is None else list_files(folder)
    try:
        chosen = choose_files(names, name, lambda index: Path(folder or "", index))
    except ValueError:
        folder = None
    if folder is None:
        raise FileNotFoundError(
            f"{name} has not been fetched whole to this machine, and there is no network (HF_HUB_OFFLINE, or none "
            "that answers); fetch it once with one."
        )
    sizes = ((file, (folder / file).stat().st_size) for file in chosen)
    files = tuple(File(file, size, None, size) for file, size in sizes)
    return Download(name, folder.name, folder, files, online=False)


def list_files(folder: Path) -> list[str]:
    """Names of the files of a folder and of those in it."""
    found = (*folder.iterdir(), *folder.glob("*/*"))
    return [path.relative_to(folder).as_posix() for path in found if path.is_file()]


def read_sibling(sibling: RepoSibling, cache: RepoCache, commit: str) -> File:
    size, digest = (sibling.lfs.size, sibling.lfs.sha256) if sibling.lfs else (sibling.size, sibling.blob_id)
    if type(size) is not int or size < 0 or (digest is not None and not DIGEST.fullmatch(str(digest))):
        raise ValueError(
            f"{host()} must give {sibling.rfilename} a size and a digest, got {size!r} and {digest!r}; "
            "correct HF_ENDPOINT."
        )
    file = File(sibling.rfilename, size, digest)
    return File(file.name, size, digest, cache.local_bytes(commit, file))


def read_licence(info: ModelInfo) -> str:
    """Short name of the licence; where that is "other", the name that its makers give it."""
    tags = info.tags if isinstance(info.tags, list) else []
    licences = (tag.removeprefix(LICENCE) for tag in tags if isinstance(tag, str) and tag.startswith(LICENCE))
    short = next(licences, "")
    return str(getattr(info.card_data, "license_name", None) or short) if short == "other" else short


def check_names(names: Collection[str], repo: str) -> None:
    """Check the names that a hub lists. Raises ValueError where one of them could lead out of a folder."""
    for name in names:
        path = PurePosixPath(name if isinstance(name, str) else "/")
        if path.is_absolute() or not path.parts or ".." in path.parts or "\\" in name or "\0" in name:
            raise ValueError(f"{repo} must list files inside itself, and lists {name!r:.200}; do not trust it.")


def choose_files(names: Collection[str], name: HubName, fetch_index: Callable[[str], Path]) -> list[str]:
    """Choose the files of a checkpoint: never code, pickles only where there is nothing else, weights last.

    Where all weights are on this machine, so is everything. `fetch_index(name)` is a path where that index can be
    read. Raises ValueError where `names` are not those of a whole checkpoint.
    """
    repo, main = name.repo, next((one for one in WEIGHTS if one in names), None)
    if main is None or name.quant:
        if parts := choose_gguf(names, name):
            return [*(one for one in SMALL if one in names), *parts]
        there = ", ".join(sorted(names)[:20]) or "nothing"
        raise ValueError(f"a checkpoint must have one of {', '.join(WEIGHTS)}, or a GGUF file; {repo} has {there}.")
    shards = read_shards(fetch_index(main), main) if main.endswith(INDEX) else []
    for shard in shards:
        if shard not in names:
            raise ValueError(f"{main} must name files of {repo}, and {shard!r:.200} is none of them.")
    modules = sorted(filter(is_part_of_module, names)) if MODULES in names else []
    return [*(one for one in SMALL if one in names), *modules, main, *shards]


def choose_gguf(names: Collection[str], name: HubName) -> list[str]:
    """The parts of the GGUF file that a name asks for; none where there is no such file. Raises ValueError where it
    does not say which of several."""
    found: dict[str, list[str]] = {}
    for one in sorted(names):
        if one.endswith(GGUF) and "/" not in one and not one.startswith("mmproj"):
            part = SPLIT.fullmatch(one)
            found.setdefault(part["stem"] if part else one.removesuffix(GGUF), []).append(one)
    fits = [stem for stem in found if (name.quant or USUAL).lower() in stem.lower()]
    if len(fits) == 1:
        return found[fits[0]]
    if len(found) == 1 and not name.quant:
        return next(iter(found.values()))
    if not found:
        return []
    raise ValueError(f"Say which file of {name.repo} is meant, as hub:{name.repo}:{USUAL}; it has {', '.join(found)}.")


def read_shards(index: Path, name: str) -> list[str]:
    """Files that an index names, of its own kind alone: one of safetensors cannot ask for a pickle."""
    kind = Path(name.removesuffix(INDEX)).suffix
    table = read_json(index).get("weight_map")
    files = list(table.values()) if isinstance(table, dict) else []
    if not files or not all(isinstance(file, str) and file.endswith(kind) and "/" not in file for file in files):
        raise ValueError(f"{name} must have a table weight_map (tensor -> {kind} file beside it); do not trust it.")
    return sorted(set(files))


def check_room(download: Download, most: int | None) -> None:
    """Raise ValueError where a download exceeds `most` bytes or the free disk space."""
    if most is not None and download.missing_bytes > most:
        raise ValueError(
            f"Expected a download of at most {megabytes(most)}, got {megabytes(download.missing_bytes)} for "
            f"{download.name}; raise LOUPE_MAX_DOWNLOAD_MIB."
        )
    cache = cache_folder()
    free = shutil.disk_usage(next(path for path in (cache, *cache.parents) if path.exists())).free
    if download.missing_bytes and download.missing_bytes + MARGIN > free:
        raise ValueError(
            f"{download.name} needs {megabytes(download.missing_bytes)} in {cache}, and {megabytes(free)} are free; "
            "make room, or name another place in HF_HOME."
        )


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
