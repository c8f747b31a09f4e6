"""What people bring to learn from, kept under the folder of the runs: their recipes name it."""

from __future__ import annotations

import re
from hashlib import blake2b
from pathlib import Path
from shutil import rmtree

from engine.runtime import limits
from engine.training.atomic import replace_atomically
from engine.training.folder import size

FOLDER = ".data"  # in that of the runs; one folder a file, called by a digest of what is in it
DIGEST = re.compile(r"[0-9a-f]{32}")
LONGEST = 60  # characters of a name
MIB = 2**20


def store_file(name: str, data: bytes) -> Path:
    """The file, under a name that nothing can be made of but a name. Raises ValueError where it is too large."""
    if len(data) > limits.MAX_DATA:
        raise ValueError(
            f"{plain(name)} must have at most {limits.MAX_DATA // MIB:,} MiB, got {len(data) / MIB:,.1f}; take a part "
            "of it, or raise LOUPE_MAX_DATA_MIB where Loupe is started."
        )
    file = folder() / blake2b(name.encode() + b"\0" + data, digest_size=16).hexdigest() / plain(name)
    if not file.is_file():
        make_room(len(data))
        file.parent.mkdir(parents=True, exist_ok=True)
        with replace_atomically(file) as partial:
            partial.write_bytes(data)
    return file


def find_file(digest: str) -> Path | None:
    """The file of that digest, if it is here."""
    if not DIGEST.fullmatch(digest) or not (folder() / digest).is_dir():
        return None
    return next((path for path in (folder() / digest).iterdir() if not path.name.startswith(".")), None)


def make_room(need: int) -> None:
    """Deletes what no run learns from, the oldest first. Raises ValueError where that is not enough."""
    taken = size(folder()) if folder().is_dir() else 0
    if taken + need > limits.DATA_DISK:
        recipes = [path.read_text(errors="replace") for path in folder().parent.glob("*/recipe.toml")]
        for old in sorted(folder().iterdir(), key=lambda path: path.stat().st_mtime):
            if taken + need > limits.DATA_DISK and not any(old.name in recipe for recipe in recipes):
                taken -= size(old)
                rmtree(old, ignore_errors=True)
    if taken + need > limits.DATA_DISK:
        raise ValueError(
            f"all data that was brought here may take {limits.DATA_DISK // MIB:,} MiB, which the runs' own data fills; "
            "delete runs, or raise LOUPE_DATA_DISK_MIB where Loupe is started."
        )


def folder() -> Path:
    return Path(limits.RUNS_FOLDER).resolve() / FOLDER


def plain(name: str) -> str:
    """The last part of a path, letters, digits, spaces, and - _ . in it."""
    last = re.sub(r"[^\w .-]+", " ", name.replace("\\", "/").rpartition("/")[2]).strip(" .")
    stem, dot, suffix = last.rpartition(".")
    short = f"{stem[: LONGEST - len(suffix)]}.{suffix}" if dot and len(suffix) < 10 else last[:LONGEST]
    return short or "data"
