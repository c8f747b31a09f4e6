"""Everything that a server keeps, in one file and back: `python -m server.backup FILE.tar.gz`, and `--restore`.

loupe.toml, lti.toml, lti.pem    the settings, those of LTI platforms, and Loupe's key for these
classes.sqlite                   class sessions
runs/, models/, uploads/         the folders that the settings name
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO

from engine.budget import budget
from engine.training.launch.queue import Queue
from server.settings import CLASSES_FILE, LTI_FILE, SETTINGS_FILE, USUAL_FILE, fill_budget

SETTINGS, CLASSES = "loupe.toml", "classes.sqlite"
LOCKS = ".queue"  # of trainings that live
TRIES = 20  # until no file of a folder is replaced while it is opened
ROOM = ".loupe-restore-"  # begins the name of a folder in which what is restored waits for the rest
LEVEL = 1  # of compression: weights hardly become smaller


def places() -> dict[str, Path]:
    """Where each part stands on this machine; without those that its settings do not name."""
    files = {SETTINGS: SETTINGS_FILE or USUAL_FILE, CLASSES: CLASSES_FILE}
    if LTI_FILE:
        files |= {"lti.toml": LTI_FILE, "lti.pem": Path(LTI_FILE).with_suffix(".pem")}
    folders = {"runs": budget.runs_folder, "models": budget.models_folder, "uploads": budget.uploads_folder}
    return {name: Path(place).absolute() for name, place in (files | folders).items() if place}


def back_up(target: Path, replace: bool = False) -> None:
    """Writes all that there is. Raises ValueError, with a sentence, where `target` cannot be written."""
    if not target.name.endswith(".tar.gz"):
        raise ValueError(f"A backup must have a name that ends with .tar.gz, got {target.name!r}; choose another.")
    if target.exists() and not replace:
        raise ValueError(f"{target} is there already; choose another name, or replace it by --replace.")
    target = target.absolute()
    partial = target.with_name(f"{target.name}.partial")
    partial.touch(mode=0o600)  # class sessions and keys are nobody else's
    try:
        with tarfile.open(partial, "w:gz", compresslevel=LEVEL) as archive, TemporaryDirectory() as scratch:
            for name, place in places().items():
                if name == CLASSES and place.is_file():
                    copy_database(place, Path(scratch) / CLASSES)
                    archive.add(Path(scratch) / CLASSES, name)
                elif place.is_file():
                    archive.add(place.resolve(), name)
                elif place.is_dir():
                    add_folder(archive, name, place, {partial, target})
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def copy_database(source: Path, target: Path) -> None:
    """A whole copy of what processes may be writing to, and nobody else's."""
    target.touch(0o600)
    with (
        closing(sqlite3.connect(f"{source.as_uri()}?mode=ro", uri=True)) as live,
        closing(sqlite3.connect(target)) as copy,
    ):
        live.backup(copy)


def add_folder(archive: tarfile.TarFile, name: str, place: Path, without: set[Path]) -> None:
    """Adds the files of a folder and of those in it, through links too, but for databases and locks that are in use."""
    seen = set[tuple[int, int]]()
    in_use = {places()[CLASSES].with_name(places()[CLASSES].name + end) for end in ("", "-wal", "-shm")} | without
    for root, folders, _ in os.walk(place, followlinks=True):
        here = Path(root)
        known = {one: (stat.st_dev, stat.st_ino) for one in folders if (stat := (here / one).stat())}
        folders[:] = sorted(one for one in folders if one != LOCKS and known[one] not in seen)
        seen |= {known[one] for one in folders}
        with ExitStack() as stack:
            for file in open_together(here, stack):
                path = Path(file.name)
                if path not in in_use:
                    entry = archive.gettarinfo(arcname=f"{name}/{path.relative_to(place).as_posix()}", fileobj=file)
                    entry.type = tarfile.REGTYPE  # also where another name of the same file stands in the archive
                    archive.addfile(entry, file)


def open_together(folder: Path, stack: ExitStack) -> list[IO[bytes]]:
    """All files of a folder as they are at one moment: a training replaces several that belong together.

    Raises ValueError, with a sentence, where they are replaced all the time.
    """
    for _ in range(TRIES):
        with ExitStack() as opened:
            try:
                before = list(list_files(folder))
                files: list[IO[bytes]] = [opened.enter_context(path.open("rb")) for path, _ in before]
                if before == list(list_files(folder)):
                    stack.push(opened.pop_all())
                    return files
            except FileNotFoundError:
                continue
    raise ValueError(f"The files of {folder} change all the time; pause what writes to them, and try again.")


def list_files(folder: Path) -> Iterator[tuple[Path, int]]:
    for path in sorted(folder.iterdir()):
        if path.is_file():
            yield path, path.stat().st_ino


def restore(source: Path, replace: bool = False) -> None:
    """Puts each part of an archive where the settings of this machine say. Nothing is touched before all of it is read.

    Raises ValueError, with a sentence, for what is no such archive, and for what is there already.
    """
    queue = Queue(places()["runs"])
    if queue.training() or queue.names():
        raise ValueError(f"Trainings of {places()['runs']} go on or wait; stop them, and the server, and try again.")
    with ExitStack() as stack:
        staged = unpack(source, stack)
        for name in list(staged):
            if name == SETTINGS and is_same(staged[name], places()[name]):
                del staged[name]
            elif not replace and is_there(places()[name]):
                raise ValueError(f"{places()[name]} is there already; move it away, or replace it by --replace.")
        for name in sorted(staged, key=list(places()).index, reverse=True):  # folders first: a file may stand in one
            put(staged[name], places()[name])


def adopt_settings(source: Path) -> bool:
    """Where this machine has no settings file, puts that of an archive there; tells whether it did. It stands first."""
    if SETTINGS_FILE is not None or not tarfile.is_tarfile(source):
        return False
    with tarfile.open(source, "r:gz") as archive:
        entry = archive.next()
        if entry is None or entry.name != SETTINGS or not entry.isfile():
            return False
        content = archive.extractfile(entry)
        assert content is not None  # it is a file
        with places()[SETTINGS].open("xb") as file:
            shutil.copyfileobj(content, file)
    return True


def unpack(source: Path, stack: ExitStack) -> dict[str, Path]:
    """The parts of an archive, each beside its place on the same disk, until the stack ends."""
    staged = dict[str, Path]()
    try:
        with tarfile.open(source, "r:gz") as archive:
            for entry in archive:
                name, *rest = PurePosixPath(entry.name).parts or ("",)
                if name not in places() or ".." in rest or not entry.isfile() or bool(rest) == ("." in name):
                    raise ValueError(f"{source} has {entry.name[:80]!r}, which has no place here; check the settings.")
                if name not in staged:
                    beside = places()[name] if rest else places()[name].parent
                    beside.mkdir(parents=True, exist_ok=True)
                    room = TemporaryDirectory(prefix=ROOM, dir=beside)
                    staged[name] = Path(stack.enter_context(room)) / name
                target = staged[name].joinpath(*rest)
                target.parent.mkdir(parents=True, exist_ok=True)
                content = archive.extractfile(entry)
                assert content is not None  # it is a file
                with target.open("xb") as file:
                    shutil.copyfileobj(content, file)
                os.utime(target, (entry.mtime, entry.mtime))
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ValueError(f"{source} must be a whole backup of Loupe: {error}; choose another file.") from None
    return staged


def is_there(place: Path) -> bool:
    return place.is_file() or (place.is_dir() and any(list_children(place)))


def list_children(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if not path.name.startswith(ROOM)]


def is_same(one: Path, other: Path) -> bool:
    return other.is_file() and one.read_bytes() == other.read_bytes()


def put(staged: Path, place: Path) -> None:
    """Moves a part to its place; what was there goes. A folder stays the same one: it may be a disk of its own."""
    if staged.is_dir():
        before = staged.with_name("before")  # goes with the room that it is in now
        before.mkdir()
        for source, target in ((place, before), (staged, place)):
            for path in list_children(source):
                os.rename(path, target / path.name)
        return
    for end in ("-wal", "-shm"):  # of a database that is no more
        place.with_name(place.name + end).unlink(missing_ok=True)
    os.replace(staged, place)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m server.backup", description="Back up what a server keeps.")
    parser.add_argument("file", type=Path, metavar="FILE.tar.gz")
    parser.add_argument("--restore", action="store_true", help="put what the file has where the settings say")
    parser.add_argument("--replace", action="store_true", help="also in place of what is there")
    given = parser.parse_args()
    fill_budget()
    try:
        if given.restore and adopt_settings(given.file):  # they say where all else goes
            os.execv(sys.executable, [sys.executable, "-m", "server.backup", *sys.argv[1:]])
        (restore if given.restore else back_up)(given.file, given.replace)
    except (ValueError, OSError, EOFError, tarfile.TarError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
