"""Run directories in a store that several machines reach, such as s3://bucket/runs, and whole copies of them here.

A copy and the store are compared file by file with what both had when they met last, which `.store/NAME.json` among
the runs holds: what changed on one side goes to the other. Whoever trains a run, starts it or looks at it keeps its own
copy alike; nobody but the training writes most of it, and the order of a person (control.json) only grows newer.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import Any

from fsspec.core import url_to_fs

from engine.budget import budget
from engine.training.run import trash
from engine.training.run.atomic import read_json, write_json
from engine.training.run.folder import is_run, list_runs
from engine.training.run.origin import MADE
from engine.training.run.repeat import repeat
from engine.training.run.status import ACTIVE, alive, as_written

PACE = 3.0  # seconds between two comparisons
COMMON = ".store"  # folder among the runs
MARK = ".loupe-runs"  # file that tells a store from a place that is not there
# A recipe makes a run of a folder, and a weights file stands for what came before it.
ORDER = ("recipe.toml", "data/", "snapshots/", "latest/optimiser", "latest/")
LAST = ("metrics.jsonl", "status.json", "job.json")
Stamp = tuple[int, int]  # bytes, and nanoseconds since 1970
log = logging.getLogger(__name__)


class Store:
    """The store at `url`, in the words of fsspec, and the copies in `folder`.

    Raises ValueError where fsspec knows no such address, or lacks a package for it.
    """

    def __init__(self, url: str, folder: Path | str) -> None:
        try:
            files, root = url_to_fs(url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            said = str(error).rstrip(".")
            raise ValueError(
                f"runs must be a folder or an address that fsspec reads, got {url!r:.200} ({said}); install what it "
                "needs (requirements-store.txt), or correct it."
            ) from None
        self.files: Any = files
        self.root, self.folder = str(root).rstrip("/"), Path(folder).resolve()
        self.failures = failures_of(url)
        (self.folder / COMMON).mkdir(parents=True, exist_ok=True)

    # --- one run ---

    def sync(self, name: str) -> None:
        """Makes a run alike here and there. Raises OSError, or what else is in `failures`, while the store does not
        answer; what was not compared yet is compared the next time."""
        self._list_there_all()
        with self._lock(name):
            self._sync(name)

    def _sync(self, name: str) -> None:
        common, path = self._read_common(name), self.folder / name
        here, there = self._list_here(path), self._list_there(name)
        if there and not common and not is_run(there):
            log.warning("%s is the name of something else in the store; rename the run here to keep it there", name)
            return
        ours = is_trained_here(path)
        for file in sorted({*here, *there, *common}, key=order_of):
            before = common.get(file, [None, None])
            stamp, key = here.get(file), there.get(file)
            moved, changed = list(stamp or ()) != list(before[0] or ()), key != before[1]
            if moved and changed and stamp and key and file == "control.json":
                moved = not ours  # who trains hears what is asked elsewhere
            if moved and (not changed or ours or not key):
                self._push(name, file, stamp)
            elif changed:
                self._pull(name, file, key)
            if moved or changed:
                stamps = stamp_of(path / file), self._key(f"{name}/{file}") if moved else key
                common.pop(file, None)
                common |= {file: stamps} if stamps[0] else {}
                write_json(self._common(name), common)

    def _push(self, name: str, file: str, stamp: Stamp | None) -> None:
        place = f"{self.root}/{name}/{file}"
        if stamp is None:
            with suppress(FileNotFoundError):
                self.files.rm_file(place)
            return
        self.files.makedirs(place.rpartition("/")[0], exist_ok=True)
        with suppress(FileNotFoundError):  # replaced meanwhile: the next time
            self.files.put_file(str(self.folder / name / file), place)

    def _pull(self, name: str, file: str, key: str | None) -> None:
        place = self.folder / name / file
        if key is None:
            place.unlink(missing_ok=True)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f".{place.name}.{os.getpid()}-{secrets.token_hex(4)}.partial")
        try:
            self.files.get_file(f"{self.root}/{name}/{file}", str(partial))
            os.replace(partial, place)
        except FileNotFoundError:  # taken away meanwhile
            pass
        finally:
            partial.unlink(missing_ok=True)

    def _list_here(self, path: Path) -> dict[str, Stamp]:
        files = (file for file in path.rglob("*") if file.is_file() and not file.name.startswith("."))
        stamps = {file.relative_to(path).as_posix(): stamp_of(file) for file in files}
        return {name: stamp for name, stamp in stamps.items() if stamp is not None}

    def _list_there(self, name: str) -> dict[str, str]:
        self.files.invalidate_cache()
        place = f"{self.root}/{name}"
        found = self.files.find(place, detail=True)
        names = {path.partition(f"{self.root}/{name}/")[2]: key_of(info) for path, info in found.items()}
        return {file: key for file, key in names.items() if file and not file.rpartition("/")[2].startswith(".")}

    def _key(self, path: str) -> str | None:
        self.files.invalidate_cache()
        try:
            return key_of(self.files.info(f"{self.root}/{path}"))
        except FileNotFoundError:
            return None

    # --- all runs ---

    def sync_all(self) -> None:
        """Makes all runs alike: one that was deleted or renamed on one side is so on the other, where it can be had
        back. Raises as `sync`."""
        folders, here = self._list_there_all(), {path.name for path in list_runs(self.folder)}
        there, known = {name for name in folders if self._is_run_there(name)}, self._list_known()
        for name in sorted(there | here | known):
            with self._lock(name):
                if name in known and name not in here:
                    self._remove_there(name)
                elif name in known and name not in there:
                    self._remove_here(name)
                elif name not in known and name in there and (self.folder / name).exists():
                    log.warning("%s is the name of another run in the store; rename the one here to keep both", name)
                elif name in here:
                    self._sync(name)
                else:
                    self._fetch(name)

    def _is_run_there(self, name: str) -> bool:
        """Tells whether a folder of the store is a run, by what lies in it; all else is somebody's own."""
        try:
            found = self.files.ls(f"{self.root}/{name}", detail=False)
        except (FileNotFoundError, NotADirectoryError):  # a file, or taken away meanwhile
            return False
        return is_run([path.rstrip("/").rpartition("/")[2] for path in found])

    def _list_there_all(self) -> set[str]:
        """Names of all that lies in the store. Raises FileNotFoundError where there was a store, and is none: a disk
        that is not mounted is no empty one."""
        self.files.invalidate_cache()
        try:
            found = [path.rstrip("/").rpartition("/")[2] for path in self.files.ls(self.root, detail=False)]
        except FileNotFoundError:
            found = []
        if MARK not in found and self._list_known():
            raise FileNotFoundError(f"{self.root} must hold {MARK}, and does not: the store is not there.")
        if MARK not in found:
            self.files.makedirs(self.root, exist_ok=True)
            self.files.pipe_file(f"{self.root}/{MARK}", b"Run directories of Loupe.\n")
        return {name for name in found if not name.startswith(".")}

    def _list_known(self) -> set[str]:
        """Names of the runs that were here and there."""
        names = (file.stem for file in (self.folder / COMMON).glob("*.json"))
        return {name for name in names if is_run(self._read_common(name))}

    def _fetch(self, name: str) -> None:
        """A run that is new here is there at once, as a whole."""
        hidden = f"{MADE}{os.getpid()}-{secrets.token_hex(8)}"
        (self.folder / hidden).mkdir()
        try:
            common = {}
            for file, key in self._list_there(name).items():
                place = self.folder / hidden / file
                place.parent.mkdir(parents=True, exist_ok=True)
                with suppress(FileNotFoundError):
                    self.files.get_file(f"{self.root}/{name}/{file}", str(place))
                    common[file] = (stamp_of(place), key)
            os.rename(self.folder / hidden, self.folder / name)
            write_json(self._common(name), common)
        finally:
            rmtree(self.folder / hidden, ignore_errors=True)

    def _remove_there(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self.files.rm(f"{self.root}/{name}", recursive=True)
        self._common(name).unlink(missing_ok=True)

    def _remove_here(self, name: str) -> None:
        self._common(name).unlink(missing_ok=True)
        with suppress(ValueError):  # it trains here, and goes to the store again
            trash.delete(name, self.folder)

    # --- what both had ---

    def _common(self, name: str) -> Path:
        return self.folder / COMMON / f"{name}.json"

    def _read_common(self, name: str) -> dict[str, Any]:
        try:
            return dict(read_json(self._common(name)) or {})
        except ValueError:
            return {}

    @contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        """Other processes of this machine wait."""
        with (self.folder / COMMON / f".{name}.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield


def stamp_of(file: Path) -> Stamp | None:
    try:
        stat = file.stat()
    except FileNotFoundError:
        return None
    return stat.st_size, stat.st_mtime_ns


def key_of(info: dict[str, Any]) -> str:
    """Another one for another content, as far as the store tells."""
    told = next((info[name] for name in ("ETag", "md5Hash", "mtime", "LastModified", "created") if info.get(name)), "")
    return f"{info.get('size')} {told}"


def order_of(file: str) -> tuple[int, str]:
    """Place among the files of a run: whatever stands for others comes after them."""
    if file in LAST:
        return len(ORDER) + 1 + LAST.index(file), file
    return next((at for at, start in enumerate(ORDER) if file.startswith(start)), len(ORDER)), file


def is_trained_here(path: Path) -> bool:
    file = path / "status.json"
    status = as_written(file)
    return status is not None and status.state in ACTIVE and status.host == os.uname().nodename and alive(status, file)


def failures_of(url: str) -> tuple[type[Exception], ...]:
    """Errors that fsspec raises while a store does not answer."""
    if not url.startswith("s3"):
        return (OSError,)
    from botocore.exceptions import BotoCoreError

    return OSError, BotoCoreError


def open_store() -> Store | None:
    """The store of the setting `runs`; None where that is a folder. Raises as `Store`."""
    return Store(budget.runs_store, budget.runs_folder) if budget.runs_store else None


def store_of(run: Path) -> Store | None:
    """The store that has a run; None for a run elsewhere than among those of the setting."""
    return open_store() if run.resolve().parent == Path(budget.runs_folder).resolve() else None


def sync_copy(run: Path) -> None:
    """Makes the copy of a run alike, where the runs lie in a store. Raises as `Store.sync`."""
    if (store := store_of(run)) is not None:
        store.sync(run.name)


@contextmanager
def kept_alike(run: Path) -> Iterator[None]:
    """Keeps a run alike in the store while the block trains it, and when it has ended."""
    if (store := store_of(run)) is None:
        yield
        return
    store.sync(run.name)
    act = partial(try_to_sync, store, run.name)
    try:
        with repeat(act, PACE):
            yield
    finally:
        act()  # what the store does not take now, the next one gives it who looks at this copy


def try_to_sync(store: Store, name: str) -> None:
    try:
        store.sync(name)
    except store.failures as error:
        log.warning("the store of the runs does not take %s: %s", name, error)


def follow_store() -> None:
    """Keeps all runs alike in a thread of this process, unless another process of this machine does."""
    store = open_store()
    if store is not None:
        Thread(target=_follow_all, args=(store,), daemon=True).start()


def _follow_all(store: Store) -> None:
    said = ""
    with (store.folder / COMMON / ".all.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)  # whoever comes later takes over when this one ends
        while True:
            try:
                store.sync_all()
                told = ""
            except store.failures as error:
                told = str(error)
            if told and told != said:
                log.warning("the store of the runs does not answer: %s", told)
            said = told
            time.sleep(PACE)
