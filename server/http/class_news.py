"""Tells browsers whether something changed in a class session: one small answer, so that no page runs for nothing."""

from __future__ import annotations

from threading import Lock
from time import monotonic, time

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from server.classes.store import HERE, Unreachable, open_classes
from server.http.storage import folders
from server.http.workers import COOKIE
from server.library.visitors import name_person
from server.settings import CLASSES_PLACE

FRESH = 0.1  # seconds for which what was read is told to all who ask
PAUSE = 1.0  # seconds until a database that did not answer is asked again
ROUTE = "/class-news"


class News:
    """What was read last, and who is here and not noted yet: once for all learners of this process, however many."""

    def __init__(self) -> None:
        self.read, self.versions = 0.0, dict[str, tuple[int, int]]()
        self.noted, self.present = -HERE, set[tuple[str, str]]()
        self.lock = Lock()
        self.patient = 0.0
        self.trouble: Unreachable | None = None

    def tell(self, code: str, cookie: str, looked: str = "") -> tuple[int, int] | None:
        now = monotonic()
        if self.trouble and now < self.patient:  # those who ask meanwhile wait for no connection
            raise self.trouble
        try:
            store = open_classes(CLASSES_PLACE)
            if now - self.read > FRESH:
                self.read, self.versions, self.trouble = now, store.versions(), None
        except Unreachable as error:
            self.patient, self.trouble = monotonic() + PAUSE, error
            raise
        with self.lock:
            if code in self.versions and cookie:
                self.present.add((code, name_person(cookie)))
                if looked:
                    store.note_look(code, name_person(cookie), looked)
            due = self.present if self.present and now - self.noted > HERE / 3 else set[tuple[str, str]]()
            if due:
                self.noted, self.present = now, set()
        if due:
            store.see(due)
        return self.versions.get(code)


news = News()


async def tell_news(request: Request) -> Response:
    code, cookie = request.query_params.get("room", "")[:8], request.cookies.get(COOKIE, "")
    looked = request.query_params.get("looked", "")
    if await folders.find_fault():  # else each of those who ask would hold a thread of all
        return JSONResponse({"version": "unreachable"})
    try:
        found = await run_in_threadpool(news.tell, code, cookie, looked)
    except Unreachable:
        return JSONResponse({"version": "unreachable"})  # as pages/controls/classes/who.py draws it
    if found is None:
        return JSONResponse({"version": "over"})
    version, heard = found
    said = f"{version}.{heard}" if request.query_params.get("all") else str(version)
    return JSONResponse({"version": said, "now": time()})
