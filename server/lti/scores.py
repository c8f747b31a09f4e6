"""Scores that go to a platform: each once, newest last, until it is taken."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any

from sqlalchemy import ColumnElement, Row, select, tuple_, update

from server.classes.steps import Step
from server.classes.store import GRADES, LEARNERS, LINE, open_classes
from server.lti.launches import launches_of
from server.settings import CLASSES_PLACE, LTI_FILE

APART = 1000  # milliseconds between two scores of a line: Moodle compares whole seconds
TURN = 60.0  # seconds after which a process that sends is taken for one that ended


def report_score(visitor: str, target: str, score: float, best: bool = False) -> Thread | None:
    """Tells the platform a score from 0 to 1, once a change, and with `best` only a better one; without waiting."""
    launch = next((one for one in launches_of(visitor) if one.target == target and one.lineitem), None)
    if launch is None:
        return None
    line, classes = {name: str(getattr(launch, name)) for name in LINE}, open_classes(CLASSES_PLACE)
    with classes.write() as connection:
        connection.execute(classes.insert_or(GRADES).values(line).on_conflict_do_nothing())
        row = connection.execute(select(GRADES).where(*is_at(line)).with_for_update()).one()
        if row.target == target and (score == row.score or best and score < row.score):
            return None
        stamp = max(int(time.time() * 1000), row.stamp + APART)  # a clock may go back
        changed = update(GRADES).where(*is_at(line)).values(target=target, score=score, stamp=stamp)
        connection.execute(changed)
    return start_sending(line)


def report_unsent(visitor: str) -> list[Thread]:
    """Tells once more what a platform did not take."""
    lines = {tuple(str(getattr(one, name)) for name in LINE) for one in launches_of(visitor) if one.lineitem}
    columns = [GRADES.c[name] for name in LINE]
    listed = select(*columns).where(tuple_(*columns).in_(list(lines)), GRADES.c.sent < GRADES.c.stamp)
    with open_classes(CLASSES_PLACE).engine.connect() as connection:
        return [start_sending(dict(one)) for one in connection.execute(listed).mappings()]


def is_at(line: Mapping[str, str]) -> list[ColumnElement[bool]]:
    return [GRADES.c[name] == line[name] for name in LINE]


def start_sending(line: Mapping[str, str]) -> Thread:
    sending = Thread(target=send_scores, args=(line,), daemon=True)
    sending.start()
    return sending


def send_scores(line: Mapping[str, str]) -> None:
    """Sends the score of a line, and then the one that it has become meanwhile, in whichever process: none overtakes
    another. What is not taken keeps its stamp, and so its place."""
    tried = 0
    while row := take_turn(line, tried):
        tried, taken = row.stamp, try_sending(row)
        with open_classes(CLASSES_PLACE).write() as connection:
            values = {"held": 0.0} | ({"sent": tried} if taken else {})
            connection.execute(update(GRADES).where(*is_at(line), GRADES.c.sent < tried).values(values))


def take_turn(line: Mapping[str, str], tried: int) -> Row[Any] | None:
    """A score that the platform does not have and whose stamp is not `tried`; None too while another thread sends,
    which looks again afterwards."""
    now = time.time()
    with open_classes(CLASSES_PLACE).write() as connection:
        row = connection.execute(select(GRADES).where(*is_at(line)).with_for_update()).one_or_none()
        if row is None or row.stamp in (row.sent, tried) or 0 < row.held - now <= TURN:
            return None
        connection.execute(update(GRADES).where(*is_at(line)).values(held=now + TURN))
        return row


def try_sending(grade: Row[Any]) -> bool:
    import httpx2

    from server.lti.platforms import post_score, read_settings  # a server without platforms does not load it
    from server.lti.registration import add_registered

    try:
        settings = add_registered(read_settings(LTI_FILE), open_classes(CLASSES_PLACE))
        platform = settings.find(grade.issuer, grade.client)
        post_score(settings, platform, grade.lineitem, grade.user, grade.score, grade.stamp)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        print(f"{grade.issuer} did not take a score, which is sent again later: {error}", file=sys.stderr)
        return False
    return True


def score_in_room(code: str, visitor: str, is_graded: Callable[[Step], bool]) -> float | None:
    """Share of a room's graded steps that somebody has right, as far as they may know it; None without an answer."""
    classes = open_classes(CLASSES_PLACE)
    try:
        learner = classes.learner_of(code, visitor)
        room, _learners, answers = classes.find_all(code)
    except ValueError:
        return None
    graded = [number for number, step in enumerate(room.steps) if is_graded(step)]
    shown = {number: room.is_known(number) or not room.free and number != room.at for number in graded}
    mine = [one for one in answers if learner and one.learner == learner.id and shown.get(one.step)]
    return sum(one.content.get("right") is True for one in mine) / len(graded) if mine else None


def report_room(code: str, is_graded: Callable[[Step], bool]) -> list[Thread]:
    """Tells the scores of all who are in a room."""
    with open_classes(CLASSES_PLACE).engine.connect() as connection:
        visitors = connection.execute(select(LEARNERS.c.visitor).where(LEARNERS.c.room == code)).scalars().all()
    scores = {visitor: score_in_room(code, visitor, is_graded) for visitor in visitors}
    told = [report_score(visitor, f"class {code}", score) for visitor, score in scores.items() if score is not None]
    return [sending for sending in told if sending]
