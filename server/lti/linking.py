"""What a platform asks a teacher to choose for a course, and what they chose.

The page in which they choose stands in a window of its own, since a platform asks in a frame, where browsers send no
cookie of Loupe's: so what was asked is known by its secret state alone.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from sqlalchemy import insert, select, update

from engine.json_text import parse_json
from server.classes.store import LINKINGS, Classes
from server.lti.launches import keep_once

LASTS = 3600.0  # seconds in which to choose
STATE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Linking:
    """`address` takes the answer, and with it `data` as it came. `graded` says whether lines of a gradebook are made,
    `window` whether links can open in a window of their own; `language` is the teacher's, "" where it is not said."""

    issuer: str
    client: str
    deployment: str
    address: str
    data: str | None
    graded: bool
    window: bool
    language: str

    @property
    def origin(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"


def keep_linking(classes: Classes, state: str, nonce: str, until: float, linking: Linking) -> None:
    """Keeps it until a teacher has chosen. Raises ValueError for a `nonce` that came before."""
    row = {"state": state, "content": json.dumps(asdict(linking)), "ends": time.time() + LASTS}
    keep_once(classes, nonce, until, insert(LINKINGS).values(row))


def find_linking(classes: Classes, state: str) -> tuple[Linking, str, str]:
    """What was asked, and the title and the page that were chosen, "" before. Raises ValueError once it is over."""
    asked, row = select(LINKINGS).where(LINKINGS.c.state == state, LINKINGS.c.ends > time.time()), None
    if STATE.fullmatch(state):  # PostgreSQL takes not every text
        with classes.engine.connect() as connection:
            row = connection.execute(asked).one_or_none()
    if row is None:
        raise ValueError("expected a choice within an hour, got one that is over; begin again from the course.")
    return Linking(**parse_json(row.content)), row.title, row.page


def choose_link(classes: Classes, state: str, title: str, page: str) -> None:
    """Chooses a page, "course?lesson=averaging", once."""
    with classes.write() as connection:
        unchosen = update(LINKINGS).where(LINKINGS.c.state == state, LINKINGS.c.page == "")
        connection.execute(unchosen.values(title=title, page=page))
