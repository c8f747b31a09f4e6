"""Files that browsers bring, counted before they are taken."""

import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from engine.ages import DAY
from engine.budget import budget
from engine.training.run.visitor_texts import DATA, PREFERENCES, expire_texts
from server.http import uploads

MIB = 2**20


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> MemoryUploadedFileManager:
    made = MemoryUploadedFileManager(uploads.PREFIX)
    active = SimpleNamespace(uploaded_file_mgr=made, is_active_session=lambda session: session == "here")
    monkeypatch.setattr(uploads, "get_instance", lambda: active)
    monkeypatch.setattr(uploads, "SESSION_UPLOADS", 3 * MIB)
    monkeypatch.setattr(uploads, "ALL_UPLOADS", 4 * MIB)
    return made


def test_a_visitor_and_all_together_may_bring_so_much(manager: MemoryUploadedFileManager) -> None:
    async def take(request: Request) -> PlainTextResponse:
        session, body = request.path_params["session"], await request.body()
        manager.add_file(session, UploadedFileRec(request.path_params["file"], "a", "text/plain", body))
        return PlainTextResponse("")

    routes = [Route(f"{uploads.PREFIX}{{session}}/{{file}}", take, methods=["PUT"])]
    client = TestClient(Starlette(routes=routes, middleware=[Middleware(uploads.UploadLimit)]))

    def bring(session: str, file: str, size: float) -> tuple[int, str]:
        answer = client.put(f"{uploads.PREFIX}{session}/{file}", content=b"a" * int(size * MIB))
        return answer.status_code, answer.text

    assert bring("one", "a", 2) == bring("one", "b", 0.5) == (200, "")
    status, sentence = bring("one", "c", 1)
    assert status == 413 and "The files of a visitor may have 3.1 MB here" in sentence and "session_uploads" in sentence
    assert bring("two", "a", 1) == (200, "")
    assert bring("three", "a", 1)[1].startswith("The files of all visitors together may have 4.2 MB here")
    manager.remove_file("one", "a")
    assert bring("three", "a", 1) == (200, "")
    unknown = client.put(f"{uploads.PREFIX}one/d", content=iter([b"a"]))
    assert unknown.status_code == 411 and "how long" in unknown.text


def test_files_go_with_a_session_that_does_not_come_back(manager: MemoryUploadedFileManager) -> None:
    for session in ("here", "left"):
        manager.add_file(session, UploadedFileRec("a", "a", "text/plain", b"abc"))
    gone = uploads.drop_files({}, 0.0)
    assert gone == {"left": 0.0} and set(manager.file_storage) == {"here", "left"}
    assert uploads.drop_files(gone, uploads.COMES_BACK) == {} and set(manager.file_storage) == {"here"}


def test_what_visitors_brought_goes_after_some_days_unless_a_run_learns_from_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(budget, "runs_folder", str(tmp_path))
    for digest in ("abc", "def"):
        (tmp_path / DATA / digest).mkdir(parents=True)
        (tmp_path / DATA / digest / "own.txt").write_text("text")
    (tmp_path / PREFERENCES).mkdir()
    (tmp_path / PREFERENCES / "somebody.json").write_text("{}")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text('[data.text]\npath = "/runs/.data/def/own.txt"\n')
    began = time.time()
    for day in range(30):
        assert expire_texts() == 0
        monkeypatch.setattr(time, "time", lambda days=day + 1: began + days * DAY)
    assert expire_texts() == 2
    assert [path.name for path in (tmp_path / DATA).iterdir()] == ["def"]
    monkeypatch.setattr(budget, "texts_days", 0)
    assert expire_texts() == 0
