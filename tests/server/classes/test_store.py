"""Rooms, learners and answers as they are kept: over processes, kills, names that are taken, and whoever pushes in."""

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import Connection, event

from engine import pulse
from server.classes import store
from server.classes.steps import Step
from server.classes.store import Classes, Damaged, Learner, Unreachable
from tests.postgres_server import LACKS, Postgres, postgres

STEPS = [Step("walkthrough", {"text": "A dog"}, "next", "Which one?"), Step("attention", kind="words")]


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    if LACKS:
        pytest.skip(LACKS)
    with postgres() as server:
        yield server


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where class sessions are kept: a file, or a database of a PostgreSQL."""
    if request.param == "sqlite":
        return str(tmp_path / "classes.sqlite")
    new: str = request.getfixturevalue("database").new_database()
    return new


@pytest.fixture
def classes(place: str, monkeypatch: pytest.MonkeyPatch) -> Classes:
    monkeypatch.setattr(store, "PAUSE", 0.0)
    return Classes(place)


def test_a_class_from_its_start_to_its_end(classes: Classes, place: str) -> None:
    code, secret = classes.start("teacher", STEPS)
    room = classes.find(code)
    assert room.steps == tuple(STEPS) and room.at == 0 and not room.revealed
    assert classes.may_teach(code, secret, "") and classes.may_teach(code, "", "teacher")
    assert not classes.may_teach(code, "", "") and not classes.may_teach(code, secret[:-1], "another")
    ada, bo = classes.join(code, "Ada", "a" * 32), classes.join(code, "Bo", "b" * 32)
    assert classes.join(code, "Somebody else", "a" * 32) == ada  # who comes back is who they were
    with pytest.raises(ValueError, match="taken"):
        classes.join(code, " ÁDA ", "c" * 32)
    classes.hand_in(ada, 0, {"said": "·a"})
    with pytest.raises(ValueError, match="first answer"):
        classes.hand_in(ada, 0, {"said": "·b"})
    classes.hand_in(bo, 0, {"said": "·b"}, again=True)
    classes.hand_in(bo, 0, {"said": "·c"}, again=True)
    assert [(one.learner, one.content["said"]) for one in classes.answers(code)] == [(ada.id, "·a"), (bo.id, "·c")]
    version, heard = classes.versions()[code]
    assert heard >= 5  # two who joined, three answers
    classes.change(code, revealed=True, locked=True)
    assert classes.find(code).locked and classes.versions()[code] == (version + 1, heard)
    classes.go_to(code, 1)
    assert classes.find(code).at == 1 and not classes.find(code).revealed
    classes.go_to(code, 0)
    with pytest.raises(ValueError, match="shown already"):  # everybody has seen it
        classes.hand_in(bo, 0, {"said": "·d"}, again=True)
    classes.go_to(code, 1)
    room, learners, answers = classes.find_all(code)
    assert room == classes.find(code) and learners == [ada, bo] and answers == classes.answers(code)
    again = Classes(place)  # another process, or a server started anew
    assert again.find(code).at == 1 and len(again.answers(code)) == 2
    assert again.learner_of(code, "b" * 32) == bo and [one.code for one in again.rooms_of("teacher")] == [code]
    another, _secret = again.start("another teacher", STEPS)
    again.join(another, "Bo", "b" * 32)
    assert again.room_of("b" * 32) == another and again.room_of("c" * 32) == ""
    again.join(code, "Bo", "b" * 32)  # once more: the last that was joined is not the last that was begun
    assert again.room_of("b" * 32) == code
    again.delete(code)
    with pytest.raises(ValueError, match="no session"):
        classes.find(code)
    assert not classes.answers(code) and not classes.learners(code)


def test_what_is_over_is_forgotten(classes: Classes, place: str) -> None:
    code, _secret = classes.start("teacher", STEPS, days=-1)
    with pytest.raises(ValueError, match="no session"):
        Classes(place).find(code)


CHANGES: dict[str, Callable[[Classes, Learner], None]] = {
    "shown already": lambda classes, ada: classes.change(ada.room, revealed=True),
    "another step": lambda classes, ada: classes.go_to(ada.room, 1),
    "time of this step": lambda classes, ada: pass_time(classes, ada.room, 60 + store.ON_THE_WAY),
    "is over": lambda classes, ada: classes.change(ada.room, closed=True),
    "you left": lambda classes, ada: classes.leave(ada),
    "no session": lambda classes, ada: classes.delete(ada.room),
}


def pass_time(classes: Classes, code: str, seconds: float) -> None:
    with classes.write(code) as connection:
        store.raise_version(connection, code, entered=classes.find(code).entered - seconds)


@pytest.mark.parametrize("why", CHANGES)
def test_what_changed_while_an_answer_waited_for_the_database_counts(
    why: str, classes: Classes, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _secret = classes.start("teacher", [replace(STEPS[0], seconds=60, closes=True), STEPS[1]])
    ada, bo = classes.join(code, "Ada", "a" * 32), classes.join(code, "Bo", "b" * 32)
    pass_time(classes, code, 60)
    classes.hand_in(bo, 0, {"said": "on its way at the last second"})
    write = classes.write

    def wait(room: str = "") -> AbstractContextManager[Connection]:
        monkeypatch.setattr(classes, "write", write)
        CHANGES[why](classes, ada)
        return write(room)

    monkeypatch.setattr(classes, "write", wait)
    with pytest.raises(ValueError, match=why):
        classes.hand_in(ada, 0, {"said": "too late"})
    assert all(one.learner == bo.id for one in classes.answers(code))
    if why in ("is over", "no session"):
        with pytest.raises(ValueError, match=why):
            classes.join(code, "Cy", "c" * 32)


def test_two_devices_of_a_teacher_lose_nothing_and_an_answer_stays_with_its_step(classes: Classes) -> None:
    code, _secret = classes.start("teacher", STEPS)
    classes.add_steps(code, [Step("generate", kind="words")], go=True)
    ada = classes.join(code, "Ada", "a" * 32)
    classes.hand_in(ada, 2, {"said": "of the laptop"})
    classes.add_steps(code, [Step("course")])  # by the phone, whose page was drawn before
    room, _learners, (answer,) = classes.find_all(code)
    assert [one.page for one in room.steps[2:]] == ["generate", "course"] and (room.at, answer.step) == (2, 2)
    with pytest.raises(ValueError, match="press again"):
        classes.change(code, at=1, revealed=True)  # of a step that the class has left
    assert not classes.find(code).revealed
    with pytest.raises(ValueError, match="1 to 100 steps, got 101"):
        classes.add_steps(code, STEPS[:1] * 97)
    classes.delete(code)
    for change in (classes.change, classes.add_steps, classes.go_to):
        with pytest.raises(ValueError, match="no session"):
            change(code, [] if change == classes.add_steps else 0)  # type: ignore[operator]


def test_a_file_of_an_older_loupe_is_read_on(tmp_path: Path) -> None:
    code, _secret = Classes(tmp_path / "classes.sqlite").start("teacher", STEPS)
    with closing(sqlite3.connect(tmp_path / "classes.sqlite")) as old:
        for added in ("steps DROP COLUMN revealed", "steps DROP COLUMN reached", "learners DROP COLUMN joined"):
            old.execute(f"ALTER TABLE {added}")
    classes = Classes(tmp_path / "classes.sqlite")
    classes.go_to(code, 1)
    assert classes.find(code).steps == tuple(STEPS)


def test_a_learner_who_pushes_is_told_to_wait_and_nothing_too_long_is_kept(place: str) -> None:
    classes = Classes(place)
    code, _secret = classes.start("teacher", STEPS)
    ada = classes.join(code, "Ada", "a" * 32)
    kept = 0
    for at in range(50):
        try:
            classes.hand_in(ada, 0, {"said": str(at)}, again=True)
            kept += 1
        except ValueError as error:
            assert "wait" in str(error)
    assert kept < 5
    with pytest.raises(ValueError, match="shorten"):
        classes.hand_in(ada, 0, {"said": "x" * 2**20})


def test_nothing_handed_in_is_lost_with_a_killed_process(place: str) -> None:
    classes = Classes(place)
    code, _secret = classes.start("teacher", STEPS)
    writer = (
        "import sys\nfrom server.classes import store\nstore.PAUSE = 0\nmade = store.Classes(sys.argv[1])\n"
        "ada = made.join(sys.argv[2], 'Ada', 'a' * 32)\n"
        "for at in range(10**6):\n    made.hand_in(ada, 0, {'said': at}, again=True); print(at, flush=True)"
    )
    with subprocess.Popen([sys.executable, "-c", writer, place, code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = [int(process.stdout.readline()) for _ in range(20)]
        process.send_signal(signal.SIGKILL)
        said += [int(line) for line in process.stdout.read().splitlines()]
    (kept,) = Classes(place).answers(code)
    assert kept.content["said"] >= said[-1]
    bo, begun = classes.join(code, "Bo", "b" * 32), time.perf_counter()
    classes.hand_in(bo, 0, {"said": "at once"})  # no lock was left
    assert time.perf_counter() - begun < 5


LEARNERS = 8


@pytest.mark.long
def test_nothing_handed_in_is_lost_with_a_killed_database(database: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PAUSE", 0.0)
    classes = Classes(database.new_database())
    code, _secret = classes.start("teacher", STEPS)
    learners = [classes.join(code, f"learner {at}", str(at)) for at in range(LEARNERS)]
    told = [-1] * LEARNERS  # the last answer of each that was acknowledged

    def write(number: int) -> str:
        while True:
            try:
                classes.hand_in(learners[number], 0, {"said": told[number] + 1}, again=True)
            except Unreachable as error:
                return str(error)
            told[number] += 1

    with ThreadPoolExecutor(LEARNERS) as pool:
        refusals = [pool.submit(write, number) for number in range(LEARNERS)]
        while min(told) < 10:
            time.sleep(0.01)
        database.kill()
        assert all("to answer, got no answer; try again" in one.result() for one in refusals)
    with pytest.raises(Unreachable, match="try again"):
        classes.find(code)
    database.start()
    kept = {one.learner: one.content["said"] for one in classes.answers(code)}
    # The answer that was under way may have come in, unacknowledged.
    assert all(kept[learner.id] - told[number] in (0, 1) for number, learner in enumerate(learners))
    classes.hand_in(learners[0], 0, {"said": 0}, again=True)


def test_a_class_of_many_hands_in_and_is_taught_at_once(classes: Classes, place: str) -> None:
    code, _secret = classes.start("teacher", STEPS)

    def learn(number: int) -> Learner:
        own = Classes(place)  # as another replica
        learner = own.join(code, f"learner {number}", str(number))
        for at in range(5):
            own.hand_in(learner, 0, {"said": at}, again=True)
            own.see([(code, str(number))])
            own.change(code, free=bool(at % 2))
        return learner

    with ThreadPoolExecutor(LEARNERS) as pool:
        joined = list(pool.map(learn, range(LEARNERS)))
    assert {one.learner: one.content["said"] for one in classes.answers(code)} == {one.id: 4 for one in joined}
    assert classes.versions()[code] == (5 * LEARNERS, 6 * LEARNERS)
    with ThreadPoolExecutor(LEARNERS) as pool:  # one name, wanted by all
        again = [pool.submit(classes.join, code, "Ada", f"another {number}") for number in range(LEARNERS)]
    assert sum(one.exception() is None for one in again) == 1


@pytest.mark.parametrize("place", ["mysql://loupe@host/name", "postgresql+nothing://host/name", "postgresql://:x:/"])
def test_an_address_of_no_such_database_is_refused_in_a_sentence(place: str) -> None:
    with pytest.raises(Unreachable, match="expected LOUPE_DATABASE to be postgresql.*; correct it"):
        Classes(place)


def test_a_class_has_steps_and_is_not_without_end(classes: Classes, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="1 to 100"):
        classes.start("teacher", [])
    with pytest.raises(ValueError, match="no session"):
        classes.find("B\0")
    code, _secret = classes.start("teacher", STEPS)
    with pytest.raises(ValueError, match="no such step"):
        classes.go_to(code, 2)
    monkeypatch.setattr(store, "MOST_LEARNERS", 1)
    classes.join(code, "Ada", "a" * 32)
    with pytest.raises(ValueError, match="full"):
        classes.join(code, "Bo", "b" * 32)


def test_on_a_full_disk_what_was_handed_in_before_stays_and_the_next_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PAUSE", 0.0)
    classes = Classes(tmp_path / "classes.sqlite")
    code, _secret = classes.start("teacher", STEPS)
    ada = classes.join(code, "Ada", "a" * 32)
    classes.hand_in(ada, 0, {"said": "kept"})

    def limit(connection: Any, *_: object) -> None:
        connection.execute(f"PRAGMA max_page_count = {1 if full else 10**6}")

    full = True
    event.listen(classes.engine, "checkout", limit)
    with pytest.raises(Unreachable, match="^expected room on the disk .*, got a full one, .*; tell the person"):
        classes.hand_in(ada, 0, {"said": "x" * 19_000}, again=True)
    assert [one.content["said"] for one in classes.answers(code)] == ["kept"]
    full = False
    classes.hand_in(ada, 0, {"said": "x" * 19_000}, again=True)
    assert len(classes.answers(code)[0].content["said"]) == 19_000


def test_what_is_deleted_stands_in_no_file_and_the_files_are_nobody_elses(tmp_path: Path) -> None:
    classes = Classes(tmp_path / "classes.sqlite")
    code, _secret = classes.start("teacher", [Step("walkthrough", kind="words", sentence="Whisperings")])

    def names_in_files() -> set[str]:
        found = b"".join(path.read_bytes() for path in tmp_path.iterdir())
        return {name for name in secret if name.encode() in found}

    secret = {"Ada Secretname", "mumblings", "Bo Othername", "Whisperings"}
    ada, bo = (classes.join(code, name, name) for name in ("Ada Secretname", "Bo Othername"))
    classes.hand_in(ada, 0, {"said": "mumblings " * 1_000})
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    assert names_in_files() == secret
    classes.leave(ada)
    assert names_in_files() == {"Bo Othername", "Whisperings"} and classes.learners(code) == [bo]
    classes.delete(code)
    assert not names_in_files()
    classes.start("teacher", [Step("walkthrough", sentence="Whisperings")], days=-1)
    Classes(tmp_path / "classes.sqlite")  # which forgets what is over
    assert not names_in_files()


def test_a_damaged_file_is_told_to_people_and_to_who_runs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, closed = tmp_path / "classes.sqlite", tmp_path / "file"
    classes = Classes(place)
    classes.start("teacher", STEPS)
    classes.erase()
    classes.engine.dispose()
    garbled = place.read_bytes().replace(b"CREATE TABLE", b"CRE\xd9TE TABLE")
    place.write_bytes(place.read_bytes()[:5_000])  # as by a copy that was cut off
    closed.touch()
    for damage in (place.read_bytes(), b"\0damaged" * 4096, garbled):
        place.write_bytes(damage)
        for end in ("-wal", "-shm"):
            place.with_name(place.name + end).unlink(missing_ok=True)
        with pytest.raises(Damaged, match="expected the file .* to be whole, got a damaged one; tell the person"):
            Classes(place)
        assert f"{place} is damaged" in capsys.readouterr().err
    with pytest.raises(Unreachable, match="try again"):
        Classes(closed / "classes.sqlite")  # in a file there is none


@pytest.mark.parametrize("jump", [-1e6, 1e6])
def test_when_the_clock_jumps_who_is_here_stays_and_can_hand_in(
    jump: float, classes: Classes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PAUSE", 0.3)
    code, _secret = classes.start("teacher", STEPS)
    ada = classes.join(code, "Ada", "a" * 32)
    assert ada.is_here
    classes.hand_in(ada, 0, {"said": "before"}, again=True)
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + jump)
    assert classes.learners(code)[0].is_here
    classes.see([(code, "a" * 32)])
    assert classes.learners(code)[0].is_here
    classes.hand_in(ada, 0, {"said": "after"}, again=True)
    assert [one.content["said"] for one in classes.answers(code)] == ["after"]
    known = pulse.listen(f"learner {ada.id}", classes.learners(code)[0].seen)
    gone = SimpleNamespace(time=time.time, monotonic=lambda: known.looked + store.HERE)
    monkeypatch.setattr(pulse, "time", gone)
    assert not classes.learners(code)[0].is_here
