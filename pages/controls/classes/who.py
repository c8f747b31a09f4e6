"""Who is in which class session: known by the browser's cookie, over a reload and a server started anew."""

from __future__ import annotations

import secrets
from pathlib import Path

from engine.classes.store import Classes, Learner, Room, open_classes
from engine.runtime.limits import CLASSES_FILE
from pages.controls.menu import Entry, entries
from pages.controls.state.session import Remembered
from pages.controls.visitor import visitor_name
from views.core.component import view

ALONE = Remembered("visitor without a cookie", lambda: secrets.token_hex(16))
news = view("classes/news", events=("news",))  # tells when something changed in a room


def classes() -> Classes:
    return open_classes(CLASSES_FILE)


def whose() -> str:
    """Name of this visitor; one that lasts as long as the session where the browser sent no cookie."""
    return visitor_name() or ALONE.get()


def find_joined() -> str:
    """Code of the class that this browser joined; a server that never had one keeps no file."""
    return classes().room_of(whose()) if Path(CLASSES_FILE).exists() else ""


JOINED = Remembered("class that was joined", find_joined)


def joined() -> tuple[Room, Learner] | None:
    """The class that this visitor is in."""
    if not (code := JOINED.get()):
        return None
    try:
        room, learner = classes().find(code), classes().learner_of(code, whose())
    except ValueError:
        learner = None
    if learner is None or room.closed:
        JOINED.set("")
        return None
    return room, learner


def entry_of(address: str) -> Entry | None:
    """The page of an address; None where there is none."""
    return next((one for one in entries() if one.address == address), None)
