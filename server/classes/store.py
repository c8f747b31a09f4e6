"""Class sessions as they are kept: in one database that several processes share, of which a killed one takes nothing
along: a SQLite file, or PostgreSQL where several machines serve.

A teacher starts a room and gets a secret; learners join by its code. What the teacher changes raises the `version` of a
room, and what learners do its `heard`: by these browsers know that there is news. Steps are added after the others and
never moved nor taken out, so that a step is known by its number. Whatever depends on the state of a room is asked and
written in one transaction.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import sys
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, partial
from pathlib import Path
from typing import Any

from sqlalchemy import (
    DDL,
    BigInteger,
    Column,
    Connection,
    Engine,
    ExceptionContext,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    bindparam,
    create_engine,
    delete,
    event,
    func,
    insert,
    inspect,
    make_url,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, IntegrityError, InterfaceError, OperationalError
from sqlalchemy.schema import CreateColumn

from engine.ages import DAY, is_old, today
from engine.json_text import parse_json
from engine.pulse import listen
from server.classes.names import are_alike, check_name, fold
from server.classes.steps import Step, from_json, to_json

FLAGS = "revealed", "locked", "free", "points", "enrolment_closed", "closed"
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so that a code is no word
LETTERS_ONLY = re.compile(f"[{LETTERS}]+")
NO_SESSION = "there is no session {!r}; look at the code again."
LOOKS = re.compile(r"#[\w%&=.,+*\[\]-]{0,1999}")  # as assets/views/core/address.js writes it
MOST_LOOKS = 10_000
CODE = 5
TRIES = 100
MOST_STEPS, MOST_LEARNERS, LONGEST_ANSWER = 100, 200, 20_000
DAYS = 30  # until a room is deleted
PAUSE = 0.3  # seconds between two answers of one learner
ON_THE_WAY = 3.0  # seconds after the time of a step in which an answer still arrives and is graded
HERE = 15.0  # seconds since a learner was last heard of, below which they are here
# Of a PostgreSQL: seconds until one that cannot be reached, a connection that went silent, and a lock are given up.
WAITS = {"connect_timeout": 3, "tcp_user_timeout": 10_000, "options": "-c lock_timeout=10s"}
FULL = "SQLITE_FULL", "53100"  # what SQLite and PostgreSQL call a full disk
DAMAGED = "SQLITE_NOTADB", "SQLITE_CORRUPT"
NO_ANSWER = "expected the database of the class sessions to answer, got no answer; try again soon."
TABLES_LOCK = 0x10BE  # number of PostgreSQL's lock under which the tables are made

METADATA = MetaData()
ROOMS = Table(
    "rooms", METADATA,
    Column("code", String, primary_key=True), Column("secret", String, nullable=False),
    Column("owner", String, nullable=False), Column("begun", Float, nullable=False),
    Column("ends", Float, nullable=False), Column("version", Integer, nullable=False, default=0),
    Column("heard", Integer, nullable=False, default=0), Column("at", Integer, nullable=False, default=0),
    Column("entered", Float, nullable=False, default=0.0),
    Column("revealed", Integer, nullable=False, default=0), Column("locked", Integer, nullable=False, default=0),
    Column("free", Integer, nullable=False, default=0), Column("closed", Integer, nullable=False, default=0),
    Column("points", Integer, nullable=False, default=0, server_default="0"),
    Column("enrolment_closed", Integer, nullable=False, default=0, server_default="0"),
)  # fmt: skip
STEPS = Table(
    "steps",
    METADATA,
    Column("room", ForeignKey("rooms.code", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("content", Text, nullable=False),
    Column("revealed", Integer, nullable=False, default=0, server_default="0"),
    Column("reached", Integer, nullable=False, default=0, server_default="0"),
)
LEARNERS = Table(
    "learners",
    METADATA,
    Column("id", String, primary_key=True),
    Column("room", ForeignKey("rooms.code", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False),
    Column("folded", String, nullable=False),
    Column("visitor", String, nullable=False),
    Column("seen", Float, nullable=False),
    Column("consent", String, nullable=False, default=""),
    Column("joined", Float, nullable=False, default=0.0, server_default="0"),
    Column("page", Text, nullable=False, default="", server_default=""),  # that is open, as JSON
    Column("look", Text, nullable=False, default="", server_default=""),  # what of it is looked at, as behind a #
    UniqueConstraint("room", "folded"),
    UniqueConstraint("room", "visitor"),
)
ANSWERS = Table(
    "answers",
    METADATA,
    Column("learner", ForeignKey("learners.id", ondelete="CASCADE"), primary_key=True),
    Column("step", Integer, primary_key=True),
    Column("at", Float, nullable=False),
    Column("content", Text, nullable=False),
    Column("consent", String, nullable=False, default="", server_default=""),
)
# Of server/lti/platforms.py: a launch belongs to nobody until a browser opens it.
LAUNCHES = Table(
    "launches", METADATA,
    Column("state", String, primary_key=True), Column("visitor", String, nullable=False, default=""),
    Column("issuer", String, nullable=False), Column("client", String, nullable=False),
    Column("user", String, nullable=False), Column("lineitem", String, nullable=False),
    Column("page", String, nullable=False), Column("target", String, nullable=False),
    Column("name", String, nullable=False),
    Column("at", Float, nullable=False), Column("ends", Float, nullable=False),
)  # fmt: skip
# What a line of a gradebook holds of one user. `stamp` is when the score changed, `sent` the stamp of the last one that
# the platform has, both in milliseconds; a process has the turn to send until `held`.
GRADES = Table(
    "grades", METADATA,
    Column("issuer", String, primary_key=True), Column("client", String, primary_key=True),
    Column("user", String, primary_key=True), Column("lineitem", String, primary_key=True),
    Column("target", String, nullable=False, default=""), Column("score", Float, nullable=False, default=0.0),
    Column("stamp", BigInteger, nullable=False, default=0), Column("sent", BigInteger, nullable=False, default=0),
    Column("held", Float, nullable=False, default=0.0),
)  # fmt: skip
LINE = "issuer", "client", "user", "lineitem"
# Of server/lti/linking.py: what a platform asks to choose, and what was chosen.
LINKINGS = Table(
    "linkings",
    METADATA,
    Column("state", String, primary_key=True),
    Column("content", Text, nullable=False),
    Column("title", String, nullable=False, default=""),
    Column("page", String, nullable=False, default=""),
    Column("ends", Float, nullable=False),
)
# Of server/lti/registration.py: what a platform is, as JSON.
PLATFORMS = Table(
    "platforms",
    METADATA,
    Column("issuer", String, primary_key=True),
    Column("client", String, primary_key=True),
    Column("content", Text, nullable=False),
    Column("at", Float, nullable=False),
)
NONCES = Table("nonces", METADATA, Column("nonce", String, primary_key=True), Column("ends", Float, nullable=False))
# Days on which a server ran, by their ordinals (engine/ages.py).
NOTED = Table("noted", METADATA, Column("day", Integer, primary_key=True))


@dataclass(frozen=True)
class Room:
    """`at` is the number of the step, `entered` when the class came to it; in a `free` one each goes at their own pace,
    with `points` each right answer counts one, and where `enrolment_closed` nobody new joins. `reached` are the numbers
    of the steps at which it was, `shown` of those whose answer is revealed."""

    code: str
    owner: str
    begun: float
    ends: float
    version: int
    heard: int
    at: int
    entered: float
    revealed: bool
    locked: bool
    free: bool
    points: bool
    enrolment_closed: bool
    closed: bool
    steps: tuple[Step, ...]
    reached: frozenset[int]
    shown: frozenset[int]

    @property
    def step(self) -> Step:
        return self.steps[self.at]

    def seen_from(self, number: int) -> Room:
        """The room as it is for who is at another step, which has no time of its own."""
        if number == self.at:
            return self
        step = replace(self.steps[number], seconds=0)
        steps = (*self.steps[:number], step, *self.steps[number + 1 :])
        return replace(self, at=number, revealed=number in self.shown, steps=steps)

    def is_known(self, number: int) -> bool:
        """True if who answered a step may know what is right. One may have been added after the room was read."""
        return number < len(self.steps) and (self.closed or number in self.shown or self.steps[number].at_once)

    def counts(self, answer: Answer) -> bool:
        """True for a right answer to a step of which everybody may know what is right."""
        return bool(answer.content.get("right")) and self.is_known(answer.step)


@dataclass(frozen=True)
class Learner:
    id: str
    room: str
    name: str
    seen: float

    @property
    def is_here(self) -> bool:
        return listen(f"learner {self.id}", self.seen).silence < HERE


@dataclass(frozen=True)
class Answer:
    """What one learner handed in at one step: a grade's fields, and the `link` to what their page showed. `consent` is
    "asked", "given" or "refused" to show it to the class, "" where nobody asked."""

    learner: str
    step: int
    at: float
    content: Mapping[str, Any]
    consent: str = ""


@dataclass(frozen=True)
class Held:
    """A room in a list: when it was `begun`, and how many are in it."""

    code: str
    begun: float
    closed: bool
    learners: int


class Unreachable(ValueError):
    """The database does not answer: what was asked of it is neither known nor kept, and can be tried again."""


class Damaged(Unreachable):
    """The file is no database any more, and does not become one by waiting."""


class Classes:
    """Raises ValueError, with a sentence, for what cannot be done, and Unreachable without the database.

    `place` is the path of a SQLite file, or the address of a PostgreSQL.
    """

    def __init__(self, place: str | Path) -> None:
        self.looks = dict[tuple[str, str], str]()
        self.engine = open_database(str(place))
        event.listen(self.engine, "handle_error", explain_error)
        self.insert_or = sqlite.insert if self.engine.dialect.name == "sqlite" else postgresql.insert
        with self.write() as connection:
            if self.engine.dialect.name == "postgresql":  # another replica may make them at the same time
                connection.execute(select(func.pg_advisory_xact_lock(TABLES_LOCK)))
            METADATA.create_all(connection)
            add_columns(connection)
        self.forget_old()

    @contextmanager
    def write(self, room: str = "") -> Iterator[Connection]:
        """A transaction. One comes after the other: all of a SQLite file, in PostgreSQL those of one room. Each locks
        its room before all else, so that no two wait for each other."""
        with self.engine.begin() as connection:
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            elif room:
                connection.execute(select(ROOMS.c.code).where(ROOMS.c.code == room).with_for_update())
            yield connection

    def erase(self) -> None:
        """Takes what was deleted out of the log of a SQLite file too; the file itself overwrites it."""
        if self.engine.dialect.name == "sqlite":
            with self.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction in which all that is read is of one moment."""
        with self.engine.connect() as connection:
            if self.engine.dialect.name == "sqlite":
                connection.exec_driver_sql("BEGIN")
            else:
                connection.execution_options(isolation_level="REPEATABLE READ")
            yield connection

    # --- the teacher ---

    def start(self, owner: str, steps: Sequence[Step], days: int = DAYS) -> tuple[str, str]:
        """Starts a room; its code, and the secret that the teacher's part needs."""
        check_steps(len(steps))
        secret, now = secrets.token_urlsafe(18), time.time()
        for _ in range(TRIES):
            code = "".join(secrets.choice(LETTERS) for _ in range(CODE))
            try:
                with self.write() as connection:
                    ends = now + DAY * days
                    room = {"code": code, "secret": digest(secret), "owner": owner, "begun": now, "ends": ends}
                    connection.execute(insert(ROOMS).values(**room, entered=now))
                    put_steps(connection, code, steps)
            except IntegrityError:
                continue
            return code, secret
        raise ValueError("no code is free; close sessions that are over.")

    def find(self, code: str) -> Room:
        with self.read() as connection:
            return find_room(connection, code)

    def find_all(self, code: str) -> tuple[Room, list[Learner], list[Answer]]:
        """A room, who is in it and what they handed in, all of one moment."""
        with self.read() as connection:
            return find_room(connection, code), find_learners(connection, code), find_answers(connection, code)

    def may_teach(self, code: str, secret: str, owner: str) -> bool:
        """Whoever has the secret may, and whoever started the room in this browser."""
        if not LETTERS_ONLY.fullmatch(code):
            return False
        with self.engine.connect() as connection:
            row = connection.execute(select(ROOMS.c.secret, ROOMS.c.owner).where(ROOMS.c.code == code)).one_or_none()
        if row is None:
            return False
        return bool(owner and secrets.compare_digest(row.owner, owner)) or (
            bool(secret) and secrets.compare_digest(row.secret, digest(secret))
        )

    def rooms_of(self, owner: str) -> list[Held]:
        """The rooms that somebody started, the newest first."""
        count = select(func.count()).where(LEARNERS.c.room == ROOMS.c.code).scalar_subquery()
        columns = (ROOMS.c.code, ROOMS.c.begun, ROOMS.c.closed, count.label("learners"))
        listed = select(*columns).where(ROOMS.c.owner == owner).order_by(ROOMS.c.begun.desc())
        with self.engine.connect() as connection:
            rows = connection.execute(listed).all() if owner else []
        return [Held(row.code, row.begun, bool(row.closed), row.learners) for row in rows]

    def renew_secret(self, code: str) -> str:
        """A new secret in place of the one before."""
        secret = secrets.token_urlsafe(18)
        with self.write(code) as connection:
            find_room(connection, code)
            connection.execute(update(ROOMS).where(ROOMS.c.code == code).values(secret=digest(secret)))
        return secret

    def add_steps(self, code: str, steps: Sequence[Step], go: bool = False) -> None:
        """Adds steps after all that are there by now; with `go` sends the class to the first of them."""
        with self.write(code) as connection:
            count = len(find_room(connection, code).steps)
            put_steps(connection, code, steps, count)
            if go:
                enter_step(connection, code, count)
            raise_version(connection, code)

    def go_to(self, code: str, number: int) -> None:
        """Sends the class to a step, which is revealed where it was."""
        with self.write(code) as connection:
            if not 0 <= number < len(find_room(connection, code).steps):
                raise ValueError("there is no such step; choose one of the list.")
            enter_step(connection, code, number)

    def change(self, code: str, at: int | None = None, **flags: bool) -> None:
        """Sets some of FLAGS; with `at` only while the class is at that step."""
        with self.write(code) as connection:
            if at not in (None, find_room(connection, code).at):
                raise ValueError("the class is at another step now, by another device; look at it and press again.")
            raise_version(connection, code, **{name: int(value) for name, value in flags.items()})

    def ask_consent(self, code: str, learner: str, step: int, consent: str) -> None:
        """Notes whether one answer may be shown to the class; one that is handed in again is asked for again."""
        with self.write(code) as connection:
            found = (ANSWERS.c.learner == learner, ANSWERS.c.step == step)
            connection.execute(update(ANSWERS).where(*found).values(consent=consent))
            raise_version(connection, code)

    def delete(self, code: str) -> None:
        """Deletes a room, who was in it, and all that was handed in."""
        with self.write(code) as connection:
            connection.execute(delete(ROOMS).where(ROOMS.c.code == code))
        self.erase()

    def forget_old(self) -> None:
        """Deletes what is over: rooms and launches by their ages, and by the clock what refuses to be used again."""
        with self.write() as connection:
            connection.execute(self.insert_or(NOTED).values(day=today().toordinal()).on_conflict_do_nothing())
            noted = [date.fromordinal(day) for day in connection.execute(select(NOTED.c.day)).scalars()]
            gone = 0
            for name, began in (ROOMS.c.code, ROOMS.c.begun), (LAUNCHES.c.state, LAUNCHES.c.at):
                ends = name.table.c.ends
                over = connection.execute(select(name, began, ends).where(ends < time.time())).all()
                names = [one for one, at, until in over if is_old(at, round((until - at) / DAY), noted)]
                gone += sum(connection.execute(delete(name.table).where(name == one)).rowcount for one in names)
            old = [delete(table).where(table.c.ends < time.time()) for table in (LINKINGS, NONCES)]
            launched = select(*(LAUNCHES.c[name] for name in LINE))
            old.append(delete(GRADES).where(tuple_(*(GRADES.c[name] for name in LINE)).not_in(launched)))
            gone += sum(connection.execute(one).rowcount for one in old)
        if gone:
            self.erase()

    # --- the learners ---

    def note_look(self, code: str, visitor: str, looked: str) -> None:
        """Keeps, in this process alone, what a learner's page looks at, as behind the # of a link."""
        if len(self.looks) > MOST_LOOKS:
            self.looks.clear()
        self.looks[code, visitor] = check_look(looked)

    def look_of(self, code: str, visitor: str) -> str:
        """What the page of a learner looked at last; "" where it did not say."""
        return self.looks.get((code, visitor), "")

    def note_page(self, learner: Learner, page: str, link: Mapping[str, str]) -> None:
        """Keeps which page a learner has open, and the query of a link to what it shows; nothing that is too long."""
        kept = json.dumps({"page": page, "link": dict(link)})
        with self.write() as connection:
            said = kept if len(kept) <= LONGEST_ANSWER else ""
            connection.execute(update(LEARNERS).where(LEARNERS.c.id == learner.id).values(page=said))

    def pages(self, code: str) -> list[tuple[Learner, str, dict[str, str], str]]:
        """Who is in a room, and of those whose page is known that page, the link, and what it looks at."""
        with self.read() as connection:
            listed = select(LEARNERS.c.id, LEARNERS.c.page, LEARNERS.c.look).where(LEARNERS.c.room == code)
            kept = {row.id: row for row in connection.execute(listed)}
            learners = [one for one in find_learners(connection, code) if kept[one.id].page]
        told = [(one, parse_json(kept[one.id].page), kept[one.id].look) for one in learners]
        return [(one, page["page"], page["link"], look) for one, page, look in told]

    def join(self, code: str, name: str, visitor: str) -> Learner:
        """Joins by a name that is free; a `visitor` who joined before is who they were."""
        name = check_name(name)
        made = {"id": secrets.token_hex(8), "room": code, "name": name, "folded": fold(name), "visitor": visitor}
        with self.write(code) as connection:
            room = find_room(connection, code)
            if room.closed:
                raise ValueError("this session is over.")
            before = connection.execute(
                select(LEARNERS.c.id).where(LEARNERS.c.room == code, LEARNERS.c.visitor == visitor)
            ).scalar_one_or_none()
            if before is None and room.enrolment_closed:
                raise ValueError("nobody new can join this session now; ask who teaches it.")
            count = connection.execute(
                select(func.count()).select_from(LEARNERS).where(LEARNERS.c.room == code)
            ).scalar_one()
            if before is None and count >= MOST_LEARNERS:
                raise ValueError(f"this session is full: at most {MOST_LEARNERS} can join.")
            others = select(LEARNERS.c.name, LEARNERS.c.folded)
            others = others.where(LEARNERS.c.room == code, LEARNERS.c.visitor != visitor)
            # What is folded is by the rules of the Loupe that kept it.
            if any(one.folded == made["folded"] or are_alike(one.name, name) for one in connection.execute(others)):
                raise ValueError(f"“{name}” is taken; choose another name.")
            if before is None:
                connection.execute(insert(LEARNERS).values(**made, seen=time.time(), joined=time.time()))
            else:
                connection.execute(update(LEARNERS).where(LEARNERS.c.id == before).values(joined=time.time()))
            note_heard(connection, code)
            (found,) = find_learners(connection, code, LEARNERS.c.visitor == visitor)
            return found

    def learner_of(self, code: str, visitor: str) -> Learner | None:
        with self.read() as connection:
            return next(iter(find_learners(connection, code, LEARNERS.c.visitor == visitor)), None)

    def learners(self, code: str) -> list[Learner]:
        with self.read() as connection:
            return find_learners(connection, code)

    def room_of(self, visitor: str) -> str:
        """Code of the room that somebody joined last and that is not closed; "" where there is none."""
        listed = select(ROOMS.c.code).join(LEARNERS).where(LEARNERS.c.visitor == visitor, ROOMS.c.closed == 0)
        with self.engine.connect() as connection:
            listed = listed.order_by(LEARNERS.c.joined.desc(), ROOMS.c.begun.desc())
            return connection.execute(listed).scalars().first() or ""

    def rooms_left(self, visitor: str) -> list[str]:
        """Codes of the closed rooms that somebody is in, the newest first."""
        listed = select(ROOMS.c.code).join(LEARNERS).where(LEARNERS.c.visitor == visitor, ROOMS.c.closed == 1)
        with self.engine.connect() as connection:
            return list(connection.execute(listed.order_by(ROOMS.c.begun.desc())).scalars())

    def see(self, present: Collection[tuple[str, str]]) -> None:
        """Notes who is here, and what they look at: learners by the codes of their rooms and their visitors."""
        found = (LEARNERS.c.room == bindparam("code"), LEARNERS.c.visitor == bindparam("who"))
        noted = update(LEARNERS).where(*found).values(seen=bindparam("now"), look=bindparam("looked"))
        now = time.time()
        rows = [{"code": code, "who": who, "now": now, "looked": self.look_of(code, who)} for code, who in present]
        with self.write() as connection:
            connection.execute(noted, rows)

    def leave(self, learner: Learner) -> None:
        """Takes a learner and what they handed in out of a room."""
        with self.write(learner.room) as connection:
            connection.execute(delete(LEARNERS).where(LEARNERS.c.id == learner.id))
            note_heard(connection, learner.room)
        self.erase()

    def hand_in(self, learner: Learner, step: int, content: Mapping[str, Any], again: bool = False) -> None:
        """Keeps an answer of a learner to a step that is open: the one that the class is at, or any where each goes at
        their own pace; with `again` in place of the one before."""
        text = json.dumps(content)
        if len(text) > LONGEST_ANSWER:
            raise ValueError(f"an answer has at most {LONGEST_ANSWER:,} characters; shorten it.")
        with self.write(learner.room) as connection:
            now = time.time()
            check_open(find_room(connection, learner.room), step, now)
            if not find_learners(connection, learner.room, LEARNERS.c.id == learner.id):
                raise ValueError("you left this session, and are no longer in it; join again by its code.")
            mine = ANSWERS.c.learner == learner.id
            last = connection.execute(select(func.max(ANSWERS.c.at)).where(mine)).scalar_one()
            if last is not None and 0 <= now - last < PAUSE:  # one of the future is by another clock
                raise ValueError("that was fast; wait a moment and hand it in again.")
            row = {"learner": learner.id, "step": step, "at": now, "content": text, "consent": ""}
            made = self.insert_or(ANSWERS).values(**row)
            kept = made.on_conflict_do_nothing()
            if again:
                kept = made.on_conflict_do_update(index_elements=["learner", "step"], set_=row)
            if connection.execute(kept.returning(ANSWERS.c.step)).first() is None:
                raise ValueError("your first answer to this stands.")
            note_heard(connection, learner.room)

    def answers(self, code: str) -> list[Answer]:
        """All that was handed in, in the order of the steps and of time."""
        with self.read() as connection:
            return find_answers(connection, code)

    def versions(self) -> dict[str, tuple[int, int]]:
        """Version of each room, and how often its learners were heard of."""
        listed = select(ROOMS.c.code, ROOMS.c.version, ROOMS.c.heard)
        with self.engine.connect() as connection:
            return {row.code: (row.version, row.heard) for row in connection.execute(listed)}


@cache
def open_classes(place: str) -> Classes:
    """The store at a path or an address, once a process. One that did not open is tried again."""
    return Classes(place)


def keeps_classes(place: str) -> bool:
    """True if there can be a session at all: without a database of its own, a server that never had one has no file."""
    return "://" in place or Path(place).exists()


def open_database(place: str) -> Engine:
    """Engine of a SQLite file at a path, or of the PostgreSQL at an address; nothing is asked of it yet."""
    if "://" not in place:
        try:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            if not Path(place).exists():
                Path(place).touch(0o600)  # what people hand in is nobody else's; SQLite gives its log the same mode
        except OSError as error:
            print(f"The file of the class sessions cannot be made: {error}; correct LOUPE_CLASSES.", file=sys.stderr)
            raise Unreachable(NO_ANSWER) from None
        engine = create_engine(f"sqlite:///{place}", connect_args={"timeout": 10})
        event.listen(engine, "connect", partial(prepare, place))
        return engine
    try:
        address = make_url(place)
        if address.get_backend_name() != "postgresql":
            raise ArgumentError(f"an address of {address.get_backend_name()}")
        return create_engine(address, pool_pre_ping=True, connect_args=WAITS)
    except (ArgumentError, ModuleNotFoundError, ValueError) as error:
        # A port that is none may be part of a password.
        said = str(error) if isinstance(error, ArgumentError | ModuleNotFoundError) else "another form"
        raise Unreachable(
            "expected LOUPE_DATABASE to be postgresql+psycopg://user:password@host/name, and the packages of "
            f"requirements-replicas.txt, got {said}; correct it where Loupe is started."
        ) from None


def tell_damage(place: str, error: BaseException) -> Damaged:
    """What a page says of it; who runs the server reads which file it is."""
    print(f"{place} is damaged: {error}; put a backup there, or move it away.", file=sys.stderr)
    return Damaged(
        "expected the file of the class sessions to be whole, got a damaged one; tell the person who runs Loupe."
    )


def explain_error(context: ExceptionContext) -> None:
    """Raises Unreachable for what is no fault of a statement. Who runs the server reads the cause; a page does not name
    the machine."""
    error = context.sqlalchemy_exception
    damage = getattr(error and error.orig, "sqlite_errorname", "")
    if damage.startswith(DAMAGED):
        raise tell_damage(str(context.engine and context.engine.url.database), context.original_exception)
    if isinstance(error, OperationalError | InterfaceError) and not context.is_pre_ping:
        cause = " ".join(str(error.orig).split())
        code = getattr(error.orig, "sqlite_errorname", "") or getattr(error.orig, "sqlstate", "")
        if code in FULL:
            print(f"The disk of the class sessions is full: {cause}; make room there.", file=sys.stderr)
            raise Unreachable(
                "expected room on the disk for what the class hands in, got a full one, and this was not kept; tell "
                "the person who runs Loupe, then do it again."
            )
        print(f"The database of the class sessions does not answer: {cause}; see that it runs.", file=sys.stderr)
        raise Unreachable(NO_ANSWER)


def prepare(place: str, connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where `write` says so
    for said in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON", "secure_delete=ON"):
        try:
            connection.execute(f"PRAGMA {said}")
        except UnicodeDecodeError as error:  # of what SQLite says of the damage, in which it quotes the file
            raise tell_damage(place, error) from None


def add_columns(connection: Connection) -> None:
    """Adds to tables of an older Loupe the columns that they lack."""
    for table in METADATA.sorted_tables:
        there = {one["name"] for one in inspect(connection).get_columns(table.name)}
        for column in (one for one in table.columns if one.name not in there):
            made = CreateColumn(column).compile(dialect=connection.dialect)
            connection.execute(DDL(f"ALTER TABLE {table.name} ADD COLUMN {made}"))


def find_room(connection: Connection, code: str) -> Room:
    if not LETTERS_ONLY.fullmatch(code):  # PostgreSQL takes not every text
        raise ValueError(NO_SESSION.format(code[:8]))
    row = connection.execute(select(ROOMS).where(ROOMS.c.code == code)).mappings().one_or_none()
    if row is None:
        raise ValueError(NO_SESSION.format(code[:8]))
    listed = connection.execute(select(STEPS).where(STEPS.c.room == code).order_by(STEPS.c.number)).mappings().all()
    steps = tuple(from_json(parse_json(one["content"])) for one in listed)
    reached = frozenset(one["number"] for one in listed if one["reached"]) | {row["at"]}
    shown = frozenset(one["number"] for one in listed if one["revealed"] and one["number"] != row["at"])
    shown |= {row["at"]} if row["revealed"] else set()
    kept: dict[str, Any] = {name: bool(row[name]) for name in FLAGS}
    kept |= {name: row[name] for name in ("code", "owner", "begun", "ends", "version", "heard", "at", "entered")}
    return Room(**kept, steps=steps, reached=reached, shown=shown)


def find_learners(connection: Connection, code: str, *more: Any) -> list[Learner]:
    columns = [LEARNERS.c[name] for name in ("id", "room", "name", "seen")]
    listed = select(*columns).where(LEARNERS.c.room == code, *more).order_by(LEARNERS.c.folded)
    return [Learner(**row) for row in connection.execute(listed).mappings()]


def find_answers(connection: Connection, code: str) -> list[Answer]:
    listed = select(ANSWERS).join(LEARNERS).where(LEARNERS.c.room == code).order_by(ANSWERS.c.step, ANSWERS.c.at)
    rows = connection.execute(listed).mappings()
    return [Answer(row["learner"], row["step"], row["at"], parse_json(row["content"]), row["consent"]) for row in rows]


def put_steps(connection: Connection, code: str, steps: Sequence[Step], first: int = 0) -> None:
    check_steps(first + len(steps))
    rows = [{"room": code, "number": at, "content": json.dumps(to_json(one))} for at, one in enumerate(steps, first)]
    connection.execute(insert(STEPS), rows)


def enter_step(connection: Connection, code: str, number: int) -> None:
    """Sends a room to a step, and keeps of the one that it leaves that it was there, and what is revealed."""
    here = select(ROOMS.c.revealed).where(ROOMS.c.code == code).scalar_subquery()
    at = select(ROOMS.c.at).where(ROOMS.c.code == code).scalar_subquery()
    connection.execute(update(STEPS).where(STEPS.c.room == code, STEPS.c.number == at).values(revealed=here, reached=1))
    revealed = select(STEPS.c.revealed).where(STEPS.c.room == code, STEPS.c.number == number).scalar_subquery()
    raise_version(connection, code, at=number, revealed=revealed, entered=time.time())


def check_open(room: Room, step: int, now: float) -> None:
    """Raises ValueError where a step takes no answers at a time: says why."""
    if room.closed:
        raise ValueError("this session is over; it takes no more answers.")
    if room.at != step and not (room.free and 0 <= step < len(room.steps)):
        raise ValueError("the class is at another step now; this one takes no more answers.")
    room = room.seen_from(step)
    if room.revealed and not room.step.at_once:
        raise ValueError("the answer is shown already; this step takes no more answers.")
    if room.step.closes and room.step.seconds and now > room.entered + room.step.seconds + ON_THE_WAY:
        raise ValueError("the time of this step is over; it takes no more answers.")


def raise_version(connection: Connection, code: str, **values: Any) -> None:
    changed = update(ROOMS).where(ROOMS.c.code == code).values(version=ROOMS.c.version + 1, **values)
    connection.execute(changed)


def check_look(said: object) -> str:
    """What a page looks at, as it stands behind the # of a link; "" for what no page says."""
    return said if isinstance(said, str) and LOOKS.fullmatch(said) else ""


def note_heard(connection: Connection, code: str) -> None:
    connection.execute(update(ROOMS).where(ROOMS.c.code == code).values(heard=ROOMS.c.heard + 1))


def check_steps(count: int) -> None:
    if not 1 <= count <= MOST_STEPS:
        raise ValueError(f"a session has 1 to {MOST_STEPS} steps, got {count}.")


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
