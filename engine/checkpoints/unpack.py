"""Uploads of a person, put into a folder that `load` opens: the files of a checkpoint, or a zip of them.

Names and sizes are others' word: a name is looked at before anything is written, and bytes are counted as they come.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from engine.budget import budget
from engine.checkpoints.locate import is_part, is_part_of_module

CHUNK = 2**20  # bytes read at once
LARGEST_DIRECTORY = 2**22  # bytes of a zip's list of files; about 50,000 of them
HIGHEST_RATIO = 200  # inflated to packed; a text's is 3, weights' hardly above 1
SMALL = 2**20  # bytes below which no ratio is suspicious
PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others may want gigabytes for a dictionary
END, END64, LOCATOR = b"PK\5\6", b"PK\6\6", b"PK\6\7"
LONGEST_COMMENT = 2**16
OF_SYSTEMS = ("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini")  # what systems put into zips, of no interest
RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\.|$)", re.IGNORECASE)  # devices by name, on Windows
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    UnicodeError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)


@dataclass(frozen=True)
class UnpackedFolder:
    """`notes` are sentences about what was left out."""

    folder: Path
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """Uploaded file, by itself or in a zip; `size` in bytes as the zip declares it, or None."""

    name: str
    size: int | None
    open: Callable[[], IO[bytes]]
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.name!r:.120} in {self.origin}" if self.origin else f"{self.name!r:.120}"


def unpack(files: Iterable[tuple[str, BinaryIO]], folder: Path, most: int | None = None) -> UnpackedFolder:
    """`files` are names and what was sent under them; `folder` is made, or empty.

    What is no part of a checkpoint is left out and noted. Raises ValueError, and leaves the folder empty, for names
    that could lead elsewhere, a zip that is damaged, encrypted or a bomb, and more than `most` bytes, where
    None means the budget's.
    """
    most = budget.max_upload if most is None else most
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise ValueError(f"{folder} must be empty before a checkpoint is unpacked into it.")
    parts = [part for name, file in files for part in read_parts(name, file)]
    chosen, left = sort_parts(parts)
    declared = sum(part.size or 0 for part in chosen)
    if declared > most:
        raise ValueError(f"an upload may hold {most:,} bytes, got {declared:,}; raise LOUPE_MAX_UPLOAD_MIB for more.")
    try:
        written = 0
        for part in chosen:
            path = folder / inner_path(part)
            path.parent.mkdir(exist_ok=True)
            written += write_part(part, path, most - written)
    except ValueError:
        for file in sorted(folder.rglob("*"), reverse=True):
            file.rmdir() if file.is_dir() else file.unlink()
        raise
    return UnpackedFolder(folder, left)


def read_parts(name: str, file: BinaryIO) -> list[Part]:
    """A zip's files, or the one file."""
    check_name(name, "the upload")
    if not name.lower().endswith(".zip"):
        return [Part(name, None, lambda: file)]
    try:
        return list(read_entries(name, file))
    except HostileUpload as fault:
        raise ValueError(f"{name} {fault}") from None
    except UNREADABLE as error:
        raise ValueError(f"{name} must be a zip file, and does not read as one ({error}); pack it again.") from None


class HostileUpload(Exception):
    """Fault of a zip, worded to follow its name."""


def read_entries(name: str, file: BinaryIO) -> Iterator[Part]:
    if (size := directory_size(file)) > LARGEST_DIRECTORY:
        raise HostileUpload(
            f"must list its files in at most {LARGEST_DIRECTORY:,} bytes, got {size:,}; send fewer files."
        )
    archive = zipfile.ZipFile(file)
    for entry in archive.infolist():
        if entry.is_dir() or any(part in OF_SYSTEMS for part in entry.filename.split("/")):
            continue
        try:
            check_name(entry.filename, name)
        except ValueError as error:
            raise HostileUpload(f"cannot be unpacked: {error}") from None
        if not entry.filename.isascii() and not entry.flag_bits & 0x800:
            raise HostileUpload(f"must name its files in UTF-8, got {entry.orig_filename!r:.120}; pack it again.")
        mode = stat.S_IFMT(entry.external_attr >> 16)
        if mode not in (0, stat.S_IFREG):
            raise HostileUpload(
                f"must hold plain files, and {entry.filename!r:.120} is a link or a device; pack it again."
            )
        if entry.flag_bits & 1:
            raise HostileUpload(f"must not be encrypted, and {entry.filename!r:.120} is; pack it without a password.")
        if entry.compress_type not in PACKED:
            raise HostileUpload(f"must be packed as usual, and {entry.filename!r:.120} is not; pack it again.")
        if entry.file_size > HIGHEST_RATIO * entry.compress_size + SMALL:
            raise HostileUpload(
                f"must not hold {entry.filename!r:.120}, whose {entry.compress_size:,} bytes would become "
                f"{entry.file_size:,}; do not trust it."
            )
        yield Part(entry.filename, entry.file_size, partial(archive.open, entry), name)


def directory_size(file: BinaryIO) -> int:
    """Bytes of a zip's central directory, as its end says, before any of it is read (PKWARE's APPNOTE, 4.3.14-16)."""
    length = file.seek(0, os.SEEK_END)
    start = max(length - LONGEST_COMMENT - 42, 0)
    file.seek(start)
    tail = file.read()
    at = tail.rfind(END)
    if at < 0:
        return 0  # no zip, as its reader will say
    size: int = struct.unpack_from("<L", tail, at + 12)[0]
    if at >= 20 and tail[at - 20 : at - 16] == LOCATOR:
        file.seek(min(struct.unpack_from("<Q", tail, at - 12)[0], length))
        record = file.read(56)
        size = max(size, struct.unpack_from("<Q", record, 40)[0] if record[:4] == END64 else 0)
    return size


def check_name(name: str, origin: str) -> None:
    """Raises ValueError for a name that could lead out of a folder, or that no file can have."""
    path = PurePosixPath(name)
    leads_out = path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name
    impossible = (
        not path.name or not name.isprintable() or any(len(part.encode(errors="replace")) > 255 for part in path.parts)
    )
    if leads_out or impossible or any(RESERVED.match(part) for part in path.parts):
        raise ValueError(f"{origin} must have plain names of files, got {name!r:.120}; do not trust it.")


def inner_path(part: Part) -> PurePosixPath:
    """Path of a file within the folder of its checkpoint: its name, or that in the folder of a module."""
    path = PurePosixPath(part.name)
    inner = PurePosixPath(*path.parts[-2:])
    return inner if is_part_of_module(str(inner)) else PurePosixPath(path.name)


def sort_parts(parts: list[Part]) -> tuple[list[Part], tuple[str, ...]]:
    """Separate the files of one checkpoint, all in one folder, from a sentence about the rest."""
    known = [part for part in parts if is_part(PurePosixPath(part.name).name)]
    depth = min((len(PurePosixPath(part.name).parts) for part in known), default=1)
    folders = {PurePosixPath(part.name).parent for part in known if len(PurePosixPath(part.name).parts) == depth}
    if len(folders) > 1:
        raise ValueError(f"an upload must be of one checkpoint, got {len(folders)} folders of files; send one of them.")
    chosen = [part for part in known if PurePosixPath(part.name).parent in folders]
    if not chosen:
        there = ", ".join(f"{part.name!r:.60}" for part in parts[:5]) or "nothing"
        raise ValueError(f"an upload must hold the files of a checkpoint, got {there}; send its weights and config.")
    names = [PurePosixPath(part.name).name.lower() for part in chosen]
    twice = next((part for part, name in zip(chosen, names, strict=True) if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"an upload must hold each file once, got {twice} twice; send one of them.")
    inner = [part for part in parts if PurePosixPath(part.name).parent.parent in folders and inner_path(part).parts[1:]]
    chosen += [part for part in inner if part not in chosen]
    rest = [part for part in parts if part not in chosen]
    return chosen, (note_left_out(rest),) if rest else ()


def note_left_out(parts: list[Part]) -> str:
    more = f" and {len(parts) - 5} more" if len(parts) > 5 else ""
    return f"Left out as no part of a checkpoint: {', '.join(f'{part.name:.60}' for part in parts[:5])}{more}."


def write_part(part: Part, path: Path, most: int) -> int:
    """Copy a file piece by piece, and return how many bytes came."""
    limit = most if part.size is None else min(most, part.size)
    count = 0
    try:
        with path.open("xb") as target:
            source = part.open()
            while data := source.read(CHUNK):
                count += len(data)
                if count > limit:
                    break
                target.write(data)
    except UNREADABLE as error:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise ValueError(
                f"the disk must have room for {part}, and is full; try again once whoever runs Loupe has made room."
            ) from None
        raise ValueError(f"{part} is damaged and cannot be unpacked ({error}); pack it again.") from None
    if count > limit:
        told = f"{most:,} bytes" if limit == most else f"the {limit:,} bytes that it says"
        raise ValueError(f"{part} must be of at most {told}; raise LOUPE_MAX_UPLOAD_MIB for more, or send it whole.")
    if part.size not in (None, count):
        raise ValueError(f"{part} is damaged: {count:,} bytes came, and it says {part.size:,}; pack it again.")
    return count
