"""Shipped models whose weights lie in no wheel: fetched once by who asks for one, checked, and kept in the person's
folder. A checkout has them all.

assets/checkpoints/fetched.toml says of each how long its model.safetensors is, and its SHA-256; the setting `weights`,
below which address they lie, `<name>/model.safetensors` each.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import BinaryIO

from filelock import FileLock

from engine.budget import budget
from engine.places import CHECKPOINTS, USER

WEIGHTS = "model.safetensors"
TABLE = CHECKPOINTS / "fetched.toml"
PATIENCE = 30.0  # seconds without a byte


class NoWeights(ConnectionError):
    """Weights of a shipped model are not here, and no address gives them; the sentence says what to do."""


@dataclass(frozen=True)
class ShippedWeights:
    """Weights of the shipped model `name`: a file of so many `bytes`."""

    name: str
    bytes: int
    sha256: str

    @property
    def folder(self) -> Path:
        """Folder of the weights and the files that belong to them; other weights of that name have another."""
        return USER / "checkpoints" / self.sha256[:12] / self.name

    @property
    def is_here(self) -> bool:
        return (self.folder / WEIGHTS).is_file()


@cache
def list_shipped_weights() -> dict[str, ShippedWeights]:
    """All of them by name; none of them in a checkout, whose weights lie in their folders."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8")) if TABLE.is_file() else {}
    return {
        name: ShippedWeights(name, **said)
        for name, said in table.items()
        if not (CHECKPOINTS / name / WEIGHTS).is_file()
    }


def fetch(name: str, address: str = "") -> Path:
    """Folder of a whole checkpoint, whose weights are fetched unless they are here; what came before is gone on with.

    Raises NoWeights where no address is set, it does not answer, or gives nothing or something else.
    """
    wanted = list_shipped_weights()[name]
    size = f"{wanted.bytes / 1e6:.1f} MB"
    if not (wanted.folder / "config.json").is_file():
        copytree(CHECKPOINTS / name, wanted.folder, dirs_exist_ok=True)
    if wanted.is_here:
        return wanted.folder
    address = address or budget.weights_address or os.environ.get("LOUPE_WEIGHTS", "")  # a notebook has no settings
    if not address:
        raise NoWeights(
            f"The weights of {name} ({size}) are not in this package; set LOUPE_WEIGHTS to the address that has them, "
            f"or copy {name}/{WEIGHTS} of a checkout to {wanted.folder / WEIGHTS}."
        )
    part = wanted.folder / f"{WEIGHTS}.incomplete"
    with FileLock(f"{part}.lock"):
        if not wanted.is_here:  # another process may have been faster
            with part.open("ab") as out:
                receive(f"{address.rstrip('/')}/{name}/{WEIGHTS}", wanted, out)
            with part.open("rb") as came:
                digest = hashlib.file_digest(came, "sha256").hexdigest()
            if digest != wanted.sha256:
                part.unlink()
                raise NoWeights(
                    f"{WEIGHTS} of {name} must have the SHA-256 {wanted.sha256}, got {digest}; it was deleted: "
                    "correct LOUPE_WEIGHTS, or ask again."
                )
            os.replace(part, wanted.folder / WEIGHTS)
    return wanted.folder


def receive(address: str, wanted: ShippedWeights, out: BinaryIO) -> None:
    """Append to `out` what it lacks."""
    import httpx2  # slow to import

    start = out.tell()
    if start >= wanted.bytes:
        return
    sent = {"user-agent": "loupe", "accept-encoding": "identity"} | ({"range": f"bytes={start}-"} if start else {})
    try:
        with httpx2.stream("GET", address, headers=sent, follow_redirects=True, timeout=PATIENCE) as answer:
            if answer.status_code == 404:
                raise NoWeights(f"{address} does not exist; correct LOUPE_WEIGHTS.")
            answer.raise_for_status()
            if answer.status_code != 206:  # all of it comes
                out.truncate(0)
            for part in answer.iter_bytes():
                out.write(part[: wanted.bytes + 1 - out.tell()])  # one too many is enough to be told from it
                if out.tell() > wanted.bytes:
                    return
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise NoWeights(
            f"The weights of {wanted.name} ({wanted.bytes / 1e6:.1f} MB) are fetched once, and {address} does not give "
            f"them ({str(error) or type(error).__name__}); go online, or correct LOUPE_WEIGHTS, and ask again: "
            "what came is kept."
        ) from None
