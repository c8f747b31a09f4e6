"""Class sessions as they are kept: in one database that several processes share, of which a killed one takes nothing
along: a SQLite file, or PostgreSQL where several machines serve.

A teacher starts a room and gets a secret; learners join by its code. What the teacher changes raises the `version` of a
room, and what learners do its `heard`: by these browsers know that there is news.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import sys
import time
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import (
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
    create_engine,
    delete,
    event,
    func,
    insert,
    make_url,
    select,
    tuple_,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import ArgumentError, IntegrityError, InterfaceError, OperationalError

from engine.classes.steps import Step, from_json, to_json
from engine.pulse import listen

FLAGS = "revealed", "locked", "free", "closed"
LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so that a code is no word
LETTERS_ONLY = re.compile(f"[{LETTERS}]+")
NO_SESSION = "there is no session {!r}; look at the code again."
CODE = 5
TRIES = 100
MOST_STEPS, MOST_LEARNERS, LONGEST_NAME, LONGEST_ANSWER = 100, 200, 24, 20_000
DAYS = 30  # until a room is deleted
PAUSE = 0.3  # seconds between two answers of one learner
HERE = 15.0  # seconds since a learner was last heard of, below which they are here
# Of a PostgreSQL: seconds until one that cannot be reached, a connection that went silent, and a lock are given up.
WAITS = {"connect_timeout": 3, "tcp_user_timeout": 10_000, "options": "-c lock_timeout=10s"}
FULL = "SQLITE_FULL", "53100"  # what SQLite and PostgreSQL call a full disk
TABLES_LOCK = 0x10BE  # number of PostgreSQL's lock under which the tables are made
RUDE = re.compile(
    r"fuck|shit|cunt|bitch|nigg|fagg|wank|penis|vagina|asshole|bastard|whore|slut|nazi|hitler|putain|merde|salope|connard|encul"
)

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
)  # fmt: skip
STEPS = Table(
    "steps", METADATA,
    Column("room", ForeignKey("rooms.code", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True), Column("content", Text, nullable=False),
)  # fmt: skip
LEARNERS = Table(
    "learners", METADATA,
    Column("id", String, primary_key=True),
    Column("room", ForeignKey("rooms.code", ondelete="CASCADE"), nullable=False),
    Column("name", String, nullable=False), Column("folded", String, nullable=False),
    Column("visitor", String, nullable=False), Column("seen", Float, nullable=False),
    Column("consent", String, nullable=False, default=""),
    UniqueConstraint("room", "folded"), UniqueConstraint("room", "visitor"),
)  # fmt: skip
ANSWERS = Table(
    "answers", METADATA,
    Column("learner", ForeignKey("learners.id", ondelete="CASCADE"), primary_key=True),
    Column("step", Integer, primary_key=True), Column("at", Float, nullable=False),
    Column("content", Text, nullable=False),
)  # fmt: skip
# Of engine/classes/lti.py: a launch belongs to nobody until a browser opens it.
LAUNCHES = Table(
    "launches", METADATA,
    Column("state", String, primary_key=True), Column("visitor", String, nullable=False, default=""),
    Column("issuer", String, nullable=False), Column("client", String, nullable=False),
    Column("user", String, nullable=False), Column("lineitem", String, nullable=False),
    Column("page", String, nullable=False), Column("target", String, nullable=False),
    Column("name", String, nullable=False),
    Column("at", Float, nullable=False), Column("ends", Float, nullable=False),
    Column("score", Float), Column("sent", Float),
)  # fmt: skip
NONCES = Table("nonces", METADATA, Column("nonce", String, primary_key=True), Column("ends", Float, nullable=False))


@dataclass(frozen=True)
class Room:
    """`at` is the number of the step, `entered` when the class came to it; who is `free` stays where they are."""

    code: str
    owner: str
    begun: float
    ends: float
    version: int
    at: int
    entered: float
    revealed: bool
    locked: bool
    free: bool
    closed: bool
    steps: tuple[Step, ...]

    @property
    def step(self) -> Step:
        return self.steps[self.at]


@dataclass(frozen=True)
class Learner:
    """`consent` is "asked", "given" or "refused" to show what they handed in, "" where nobody asked."""

    id: str
    room: str
    name: str
    seen: float
    consent: str

    @property
    def is_here(self) -> bool:
        return listen(f"learner {self.id}", self.seen).silence < HERE


@dataclass(frozen=True)
class Answer:
    """What one learner handed in at one step: a grade's fields, and the `link` to what their page showed."""

    learner: str
    step: int
    at: float
    content: Mapping[str, Any]


class Unreachable(ValueError):
    """The database does not answer: what was asked of it is neither known nor kept, and can be tried again."""


class Classes:
    """Raises ValueError, with a sentence, for what cannot be done, and Unreachable without the database.

    `place` is the path of a SQLite file, or the address of a PostgreSQL.
    """

    def __init__(self, place: str | Path) -> None:
        self.engine = open_database(str(place))
        event.listen(self.engine, "handle_error", explain_error)
        self.insert_or = sqlite.insert if self.engine.dialect.name == "sqlite" else postgresql.insert
        with self.write() as connection:
            if self.engine.dialect.name == "postgresql":  # another replica may make them at the same time
                connection.execute(select(func.pg_advisory_xact_lock(TABLES_LOCK)))
            METADATA.create_all(connection)
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

    # --- the teacher ---

    def start(self, owner: str, steps: Sequence[Step], days: int = DAYS) -> tuple[str, str]:
        """Starts a room; its code, and the secret that the teacher's part needs."""
        check_steps(steps)
        secret, now = secrets.token_urlsafe(18), time.time()
        for _ in range(TRIES):
            code = "".join(secrets.choice(LETTERS) for _ in range(CODE))
            try:
                with self.write() as connection:
                    ends = now + 86_400 * days
                    room = {"code": code, "secret": digest(secret), "owner": owner, "begun": now, "ends": ends}
                    connection.execute(insert(ROOMS).values(**room, entered=now))
                    put_steps(connection, code, steps)
            except IntegrityError:
                continue
            return code, secret
        raise ValueError("no code is free; close sessions that are over.")

    def find(self, code: str) -> Room:
        if not LETTERS_ONLY.fullmatch(code):  # PostgreSQL takes not every text
            raise ValueError(NO_SESSION.format(code[:8]))
        with self.engine.connect() as connection:
            row = connection.execute(select(ROOMS).where(ROOMS.c.code == code)).mappings().one_or_none()
            if row is None:
                raise ValueError(NO_SESSION.format(code[:8]))
            listed = select(STEPS.c.content).where(STEPS.c.room == code).order_by(STEPS.c.number)
            steps = tuple(from_json(json.loads(one)) for one in connection.execute(listed).scalars())
        kept: dict[str, Any] = {name: bool(row[name]) for name in FLAGS}
        kept |= {name: row[name] for name in ("code", "owner", "begun", "ends", "version", "at", "entered")}
        return Room(**kept, steps=steps)

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

    def rooms_of(self, owner: str) -> list[str]:
        """Codes of the rooms that somebody started and that are not closed, the newest first."""
        listed = select(ROOMS.c.code).where(ROOMS.c.owner == owner, ROOMS.c.closed == 0).order_by(ROOMS.c.begun.desc())
        with self.engine.connect() as connection:
            return list(connection.execute(listed).scalars()) if owner else []

    def set_steps(self, code: str, steps: Sequence[Step]) -> None:
        check_steps(steps)
        with self.write(code) as connection:
            connection.execute(delete(STEPS).where(STEPS.c.room == code))
            put_steps(connection, code, steps)
            raise_version(connection, code)

    def go_to(self, code: str, number: int) -> None:
        """Sends the class to a step, which nobody has the answer of yet."""
        if not 0 <= number < len(self.find(code).steps):
            raise ValueError("there is no such step; choose one of the list.")
        with self.write(code) as connection:
            raise_version(connection, code, at=number, revealed=0, entered=time.time())

    def change(self, code: str, **flags: bool) -> None:
        """Sets `revealed`, `locked`, `free` or `closed`."""
        with self.write(code) as connection:
            raise_version(connection, code, **{name: int(value) for name, value in flags.items()})

    def ask_consent(self, code: str, learner: str, consent: str) -> None:
        with self.write(code) as connection:
            found = (LEARNERS.c.id == learner, LEARNERS.c.room == code)
            connection.execute(update(LEARNERS).where(*found).values(consent=consent))
            raise_version(connection, code)

    def delete(self, code: str) -> None:
        """Deletes a room, who was in it, and all that was handed in."""
        with self.write(code) as connection:
            connection.execute(delete(ROOMS).where(ROOMS.c.code == code))

    def forget_old(self) -> None:
        with self.write() as connection:
            for table in (ROOMS, LAUNCHES, NONCES):
                connection.execute(delete(table).where(table.c.ends < time.time()))

    # --- the learners ---

    def join(self, code: str, name: str, visitor: str) -> Learner:
        """Joins by a name that is free; a `visitor` who joined before is who they were."""
        room, name = self.find(code), check_name(name)
        if room.closed:
            raise ValueError("this session is over.")
        made = {"id": secrets.token_hex(8), "room": code, "name": name, "folded": fold(name), "visitor": visitor}
        with self.write(code) as connection:
            before = connection.execute(
                select(LEARNERS.c.id).where(LEARNERS.c.room == code, LEARNERS.c.visitor == visitor)
            ).scalar_one_or_none()
            count = connection.execute(
                select(func.count()).select_from(LEARNERS).where(LEARNERS.c.room == code)
            ).scalar_one()
            if before is None and count >= MOST_LEARNERS:
                raise ValueError(f"this session is full: at most {MOST_LEARNERS} can join.")
            taken = select(LEARNERS.c.visitor).where(LEARNERS.c.room == code, LEARNERS.c.folded == fold(name))
            if (connection.execute(taken).scalar_one_or_none() or visitor) != visitor:
                raise ValueError(f"“{name}” is taken; choose another name.")
            if before is None:
                connection.execute(insert(LEARNERS).values(**made, seen=time.time()))
            note_heard(connection, code)
        found = self.learner_of(code, visitor)
        assert found is not None
        return found

    def learner_of(self, code: str, visitor: str) -> Learner | None:
        return next((one for one in self.list_learners(code, LEARNERS.c.visitor == visitor)), None)

    def learners(self, code: str) -> list[Learner]:
        return self.list_learners(code)

    def list_learners(self, code: str, *more: Any) -> list[Learner]:
        columns = [LEARNERS.c[name] for name in ("id", "room", "name", "seen", "consent")]
        listed = select(*columns).where(LEARNERS.c.room == code, *more).order_by(LEARNERS.c.folded)
        with self.engine.connect() as connection:
            return [Learner(**row) for row in connection.execute(listed).mappings()]

    def room_of(self, visitor: str) -> str:
        """Code of the room that somebody joined last and that is not closed; "" where there is none."""
        listed = select(ROOMS.c.code).join(LEARNERS).where(LEARNERS.c.visitor == visitor, ROOMS.c.closed == 0)
        with self.engine.connect() as connection:
            return connection.execute(listed.order_by(ROOMS.c.begun.desc())).scalars().first() or ""

    def see(self, present: Collection[tuple[str, str]]) -> None:
        """Notes who is here: learners by the codes of their rooms and their visitors."""
        found = tuple_(LEARNERS.c.room, LEARNERS.c.visitor).in_(list(present))
        with self.write() as connection:
            connection.execute(update(LEARNERS).where(found).values(seen=time.time()))

    def leave(self, learner: Learner) -> None:
        """Takes a learner and what they handed in out of a room."""
        with self.write(learner.room) as connection:
            connection.execute(delete(LEARNERS).where(LEARNERS.c.id == learner.id))
            note_heard(connection, learner.room)

    def hand_in(self, learner: Learner, step: int, content: Mapping[str, Any], again: bool = False) -> None:
        """Keeps an answer of a learner to the step that the class is at; with `again` in place of the one before."""
        text = json.dumps(content)
        if len(text) > LONGEST_ANSWER:
            raise ValueError(f"an answer has at most {LONGEST_ANSWER:,} characters; shorten it.")
        room, now = self.find(learner.room), time.time()
        if room.closed or room.at != step:
            raise ValueError("the class is at another step now; this one takes no more answers.")
        if room.revealed and not room.step.at_once:
            raise ValueError("the answer is shown already; this step takes no more answers.")
        with self.write(learner.room) as connection:
            mine = ANSWERS.c.learner == learner.id
            last = connection.execute(select(func.max(ANSWERS.c.at)).where(mine)).scalar_one()
            if last is not None and 0 <= now - last < PAUSE:  # one of the future is by another clock
                raise ValueError("that was fast; wait a moment and hand it in again.")
            row = {"learner": learner.id, "step": step, "at": now, "content": text}
            made = self.insert_or(ANSWERS).values(**row)
            kept = made.on_conflict_do_nothing()
            if again:
                kept = made.on_conflict_do_update(index_elements=["learner", "step"], set_=row)
            if connection.execute(kept.returning(ANSWERS.c.step)).first() is None:
                raise ValueError("your first answer to this stands.")
            note_heard(connection, learner.room)

    def answers(self, code: str) -> list[Answer]:
        """All that was handed in, in the order of the steps and of time."""
        listed = (
            select(ANSWERS).join(LEARNERS).where(LEARNERS.c.room == code).order_by(ANSWERS.c.step, ANSWERS.c.at)
        )
        with self.engine.connect() as connection:
            rows = connection.execute(listed).mappings().all()
        return [Answer(row["learner"], row["step"], row["at"], json.loads(row["content"])) for row in rows]

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
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        engine = create_engine(f"sqlite:///{place}", connect_args={"timeout": 10})
        event.listen(engine, "connect", prepare)
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


def explain_error(context: ExceptionContext) -> None:
    """Raises Unreachable for what is no fault of a statement. Who runs the server reads the cause; a page does not name
    the machine."""
    error = context.sqlalchemy_exception
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
        raise Unreachable("expected the database of the class sessions to answer, got no answer; try again soon.")


def prepare(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # transactions begin where `write` says so
    for said in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {said}")


def put_steps(connection: Connection, code: str, steps: Sequence[Step]) -> None:
    rows = [{"room": code, "number": at, "content": json.dumps(to_json(one))} for at, one in enumerate(steps)]
    connection.execute(insert(STEPS), rows)


def raise_version(connection: Connection, code: str, **values: Any) -> None:
    changed = update(ROOMS).where(ROOMS.c.code == code).values(version=ROOMS.c.version + 1, **values)
    connection.execute(changed)


def note_heard(connection: Connection, code: str) -> None:
    connection.execute(update(ROOMS).where(ROOMS.c.code == code).values(heard=ROOMS.c.heard + 1))


def check_steps(steps: Sequence[Step]) -> None:
    if not 1 <= len(steps) <= MOST_STEPS:
        raise ValueError(f"a session has 1 to {MOST_STEPS} steps, got {len(steps)}.")


def check_name(said: str) -> str:
    """The name as it is shown. Raises ValueError for one that is empty, too long, not to be read, or rude."""
    name = " ".join(unicodedata.normalize("NFKC", said[: 4 * LONGEST_NAME]).split())
    if not any(map(str.isalnum, name)) or not name.isprintable():
        raise ValueError("a name has at least one letter or digit, and no signs that cannot be seen.")
    if len(name) > LONGEST_NAME:
        raise ValueError(f"a name has at most {LONGEST_NAME} characters; shorten it.")
    if RUDE.search(fold(name)):
        raise ValueError("choose a name that everybody in the class can read aloud.")
    return name


def fold(name: str) -> str:
    """A name as it is compared: without case, accents, and digits for letters."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    letters = "".join(one for one in plain if not unicodedata.combining(one))
    return letters.translate(str.maketrans("013457$@", "oieastsa"))


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
