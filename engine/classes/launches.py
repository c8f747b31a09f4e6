"""Who came from a platform, to which page, and which score the platform is told of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from sqlalchemy import Row, insert, select, update
from sqlalchemy.exc import IntegrityError

from engine.classes.store import DAYS, LAUNCHES, LEARNERS, NONCES, Classes, open_classes
from engine.runtime.limits import CLASSES_PLACE, LTI_FILE

GRADED = "next", "share", "loss", "head"  # steps of which an answer is right or wrong


def target_of(page: str) -> str:
    """What a page's address asks a score for: "lesson averaging", "class BCDFG", or nothing."""
    parts = urlsplit(page)
    query = {name: said[-1] for name, said in parse_qs(parts.query).items()}
    if parts.path == "/course" and "lesson" in query:
        return f"lesson {query['lesson']}"
    return f"class {query['code'].strip().upper()}" if parts.path == "/join" and "code" in query else ""


def keep_launch(classes: Classes, state: str, nonce: str, until: float, **content: str) -> None:
    """Keeps a launch until its browser opens it. Raises ValueError for a `nonce` that came before."""
    classes.forget_old()
    now = time.time()
    try:
        with classes.write() as connection:
            connection.execute(insert(NONCES).values(nonce=nonce, ends=until))
            row = {"state": state, "target": target_of(content["page"]), "at": now, "ends": now + 86_400 * DAYS}
            connection.execute(insert(LAUNCHES).values(**row, **content))
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
    """Gives a launch to a visitor, with the score that its user has."""
    with classes.write() as connection:
        row = connection.execute(select(LAUNCHES).where(LAUNCHES.c.state == state)).one()
        same = [LAUNCHES.c[name] == getattr(row, name) for name in ("issuer", "client", "user", "lineitem", "target")]
        older = select(LAUNCHES.c.score, LAUNCHES.c.sent).where(*same, LAUNCHES.c.visitor != "")
        last = connection.execute(older.order_by(LAUNCHES.c.at.desc())).first()
        values = {"score": last.score, "sent": last.sent} if last and row.user else {}
        connection.execute(update(LAUNCHES).where(LAUNCHES.c.state == state).values(visitor=visitor, **values))


def launches_of(visitor: str) -> list[Row[Any]]:
    """A visitor's launches that are not forgotten, the newest first."""
    listed = select(LAUNCHES).where(LAUNCHES.c.visitor == visitor, LAUNCHES.c.ends > time.time())
    with open_classes(CLASSES_PLACE).engine.connect() as connection:
        return list(connection.execute(listed.order_by(LAUNCHES.c.at.desc()))) if visitor else []


def report_score(visitor: str, target: str, score: float, best: bool = False) -> Thread | None:
    """Tells the platform a score from 0 to 1, once a change, and with `best` only a better one; without waiting."""
    row = next((one for one in launches_of(visitor) if one.target == target and one.lineitem), None)
    if row is None or row.score is not None and (score == row.score or best and score < row.score):
        return None
    with open_classes(CLASSES_PLACE).write() as connection:
        unchanged = LAUNCHES.c.score.is_not_distinct_from(row.score)  # in another process, meanwhile
        changed = update(LAUNCHES).where(LAUNCHES.c.state == row.state, unchanged).values(score=score)
        if not connection.execute(changed).rowcount:
            return None
    return send_score(row, score)


def report_unsent(visitor: str) -> list[Thread]:
    """Tells once more what a platform did not take."""
    newest = {one.target: one for one in reversed(launches_of(visitor)) if one.lineitem}.values()
    return [send_score(one, one.score) for one in newest if one.score is not None and one.score != one.sent]


def send_score(launch: Row[Any], score: float) -> Thread:
    sending = Thread(target=try_sending, args=(launch, score), daemon=True)
    sending.start()
    return sending


def try_sending(launch: Row[Any], score: float) -> None:
    import httpx2

    from engine.classes.lti import post_score, read_settings  # a server without platforms does not load it

    try:
        settings = read_settings(LTI_FILE)
        post_score(settings, settings.find(launch.issuer, launch.client), launch.lineitem, launch.user, score)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        print(f"{launch.issuer} did not take a score, which is sent again later: {error}", file=sys.stderr)
        return
    with open_classes(CLASSES_PLACE).write() as connection:
        connection.execute(update(LAUNCHES).where(LAUNCHES.c.state == launch.state).values(sent=score))


def score_in_room(code: str, visitor: str) -> float | None:
    """Share of a room's graded steps that somebody has right, as far as they may know it; None without an answer."""
    classes = open_classes(CLASSES_PLACE)
    try:
        room, learner = classes.find(code), classes.learner_of(code, visitor)
    except ValueError:
        return None
    graded = [number for number, step in enumerate(room.steps) if step.kind in GRADED]
    shown: Mapping[int, bool] = {
        number: room.closed or room.revealed or number != room.at or room.steps[number].at_once for number in graded
    }
    mine = [one for one in classes.answers(code) if learner and one.learner == learner.id and shown.get(one.step)]
    return sum(one.content.get("right") is True for one in mine) / len(graded) if mine else None


def report_room(code: str) -> list[Thread]:
    """Tells the scores of all who are in a room."""
    with open_classes(CLASSES_PLACE).engine.connect() as connection:
        visitors = connection.execute(select(LEARNERS.c.visitor).where(LEARNERS.c.room == code)).scalars().all()
    scores = {visitor: score_in_room(code, visitor) for visitor in visitors}
    told = [report_score(visitor, f"class {code}", score) for visitor, score in scores.items() if score is not None]
    return [sending for sending in told if sending]
