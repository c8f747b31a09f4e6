"""Who came from a platform, and to which page."""

from __future__ import annotations

import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import Insert, Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from server.classes.store import DAYS, LAUNCHES, NONCES, Classes, open_classes
from server.settings import CLASSES_PLACE


def target_of(page: str) -> str:
    """What a page's address asks a score for: "lesson averaging", "class BCDFG", or nothing."""
    parts = urlsplit(page)
    query = {name: said[-1] for name, said in parse_qs(parts.query).items()}
    if parts.path == "/course" and "lesson" in query:
        return f"lesson {query['lesson']}"
    return f"class {query['code'].strip().upper()}" if parts.path == "/join" and "code" in query else ""


def keep_launch(classes: Classes, state: str, nonce: str, until: float, **content: str) -> None:
    """Keeps a launch until its browser opens it. Raises ValueError for a `nonce` that came before."""
    now = time.time()
    row = {"state": state, "target": target_of(content["page"]), "at": now, "ends": now + 86_400 * DAYS}
    keep_once(classes, nonce, until, insert(LAUNCHES).values(**row, **content))


def keep_once(classes: Classes, nonce: str, until: float, kept: Insert) -> None:
    """Keeps what a token says. Raises ValueError for a `nonce` that came before."""
    classes.forget_old()
    try:
        with classes.write() as connection:
            connection.execute(insert(NONCES).values(nonce=nonce, ends=until))
            connection.execute(kept)
    except IntegrityError as error:
        raise ValueError("expected a new launch, got one that was used; open Loupe from the course again.") from error


def find_launch(classes: Classes, state: str, visitor: str) -> tuple[str, bool]:
    """The page of a launch that nobody opened, and whether the visitor came as somebody else before."""
    with classes.engine.connect() as connection:
        row = connection.execute(
            select(LAUNCHES).where(LAUNCHES.c.state == state, LAUNCHES.c.visitor == "")
        ).one_or_none()
        if row is None:
            raise ValueError("expected a new launch, got one that was used; open Loupe from the course again.")
        before = select(LAUNCHES.c.issuer, LAUNCHES.c.user).where(LAUNCHES.c.visitor == visitor).distinct()
        return row.page, any(tuple(one) != (row.issuer, row.user) for one in connection.execute(before))


def open_launch(classes: Classes, state: str, visitor: str) -> None:
    """Gives a launch to a visitor."""
    with classes.write() as connection:
        connection.execute(update(LAUNCHES).where(LAUNCHES.c.state == state).values(visitor=visitor))


def launches_of(visitor: str) -> list[Row[Any]]:
    """A visitor's launches that are not forgotten, the newest first."""
    listed = select(LAUNCHES).where(LAUNCHES.c.visitor == visitor, LAUNCHES.c.ends > time.time())
    with open_classes(CLASSES_PLACE).engine.connect() as connection:
        return list(connection.execute(listed.order_by(LAUNCHES.c.at.desc()))) if visitor else []
