"""Whether what a server keeps can be read: the folder of runs, and the class sessions; and that nobody waits for what
does not answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from time import monotonic

import streamlit as st

from server.classes.store import Unreachable, keeps_classes, open_classes
from server.settings import CLASSES_FILE, CLASSES_PLACE, GIVEN

PATIENCE, OF_PAGE = 2.0, 5.0  # seconds; a page asks a process that may compute much meanwhile
NOBODY = "nobody"  # whose sessions are asked for
STALLED = (
    "Expected the storage of the runs and the class sessions to answer within {seconds:g} s, got no answer. Nothing is "
    "lost: reload the page in a moment; if it stays, tell who runs this server."
)


class Storage:
    """One question at a time, however many ask: storage that stalls holds one thread, and nobody for longer than
    `patience` seconds after it was asked."""

    def __init__(self, read: Callable[[], str], patience: float) -> None:
        self.read, self.patience = read, patience
        self.asked, self.began, self.lock = Future[str](), 0.0, Lock()
        self.asked.set_result("")

    def ask(self) -> tuple[Future[str], float]:
        """The answer that comes, and the seconds for which to wait."""
        with self.lock:
            if self.asked.done():
                self.asked, self.began = Future(), monotonic()
                Thread(target=self.answer, args=(self.asked,), daemon=True).start()
            return self.asked, max(0.0, self.began + self.patience - monotonic())

    def answer(self, asked: Future[str]) -> None:
        fault = "the storage cannot be read"
        try:
            fault = self.read()
        finally:
            asked.set_result(fault)

    async def find_fault(self) -> str:
        """What cannot be read, in a few words, "" where all can."""
        asked, seconds = self.ask()
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(asked)), seconds)
        except TimeoutError:
            return f"storage has not answered for {self.patience:g} s"

    def is_stalled(self) -> bool:
        """Waits for the answer, as `find_fault` does, whatever it is."""
        asked, seconds = self.ask()
        try:
            asked.result(seconds)
        except TimeoutError:
            return True
        return False


def read_all() -> str:
    try:
        os.listdir(GIVEN.runs_folder)
    except FileNotFoundError:
        pass  # nothing has been trained
    except OSError:
        return "the runs cannot be read"
    try:
        if keeps_classes(CLASSES_PLACE):
            open_classes(CLASSES_PLACE).rooms_left(NOBODY)
    except (Unreachable, OSError):
        return "the class sessions cannot be read"
    return ""


def touch_folders() -> str:
    """Looks at the folders of runs and of class sessions; what is wrong with them says the page that needs them."""
    for folder in GIVEN.runs_folder, os.path.dirname(CLASSES_FILE) or ".":
        with suppress(OSError), os.scandir(folder) as found:
            next(found, None)
    return ""


def require_storage() -> None:
    """Ends a page, with a sentence, before it reads what does not answer."""
    if folders.is_stalled():
        st.error(STALLED.format(seconds=folders.patience))
        st.stop()


storage, folders = Storage(read_all, PATIENCE), Storage(touch_folders, OF_PAGE)
