"""A server says that it is not ready where it cannot read what it keeps."""

import asyncio
import threading
from pathlib import Path

import pytest

from server.http import storage
from server.http.storage import Storage, read_all
from tests.coroutines import finish
from tests.pages.mounted import at_page


def test_what_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs, classes = tmp_path / "runs", tmp_path / "classes.sqlite"
    monkeypatch.setattr(storage.GIVEN, "runs_folder", str(runs))
    monkeypatch.setattr(storage, "CLASSES_PLACE", str(classes))
    assert read_all() == "" and not classes.exists()
    runs.touch()  # a file
    assert read_all() == "the runs cannot be read"
    runs.unlink()
    classes.write_bytes(b"\0damaged" * 4096)
    assert read_all() == "the class sessions cannot be read"


def test_storage_that_stalls_holds_one_thread_and_keeps_nobody_waiting() -> None:
    answers, asked = threading.Event(), list[int]()

    def stall() -> str:
        asked.append(1)
        answers.wait()
        return ""

    async def ask() -> list[str]:
        found = [await kept.find_fault() for _ in range(3)]
        assert kept.is_stalled()
        answers.set()
        assert kept.asked.result(20) == ""
        return [*found, await kept.find_fault()]

    kept = Storage(stall, 0.02)
    *found, last = finish(asyncio.wait_for(ask(), 20))
    assert found == ["storage has not answered for 0.02 s"] * 3 and len(asked) == 2 and last == ""


def test_a_page_does_not_wait_for_storage_that_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    app, answers = at_page("pages/train/train.py"), threading.Event()
    monkeypatch.setattr(storage, "folders", Storage(lambda: "" if answers.wait() else "", 0.02))
    app.run()
    answers.set()
    assert [one.value for one in app.error] == [storage.STALLED.format(seconds=0.02)] and not app.button
    monkeypatch.undo()
    assert not app.run().error and app.button
