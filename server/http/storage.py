"""Whether what a server keeps can be read: the folder of runs, and the class sessions."""

from __future__ import annotations

import asyncio
import os

from server.classes.store import Unreachable, keeps_classes, open_classes
from server.settings import CLASSES_PLACE, GIVEN

PATIENCE = 2.0  # seconds
NOBODY = "nobody"  # whose sessions are asked for


class Storage:
    """One question at a time, however many ask: storage that stalls holds one thread."""

    def __init__(self) -> None:
        self.asked: asyncio.Task[str] | None = None

    async def find_fault(self) -> str:
        """What cannot be read, in a few words, "" where all can."""
        if self.asked is None or self.asked.done():
            self.asked = asyncio.create_task(asyncio.to_thread(read_all))
        try:
            return await asyncio.wait_for(asyncio.shield(self.asked), PATIENCE)
        except TimeoutError:
            return f"storage has not answered for {PATIENCE:g} s"


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


storage = Storage()
