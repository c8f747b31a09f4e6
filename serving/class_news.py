"""Tells browsers whether something changed in a class session: one small answer, so that no page runs for nothing."""

from __future__ import annotations

from time import monotonic

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from engine.classes.store import HERE, open_classes
from engine.runtime.limits import CLASSES_FILE
from engine.runtime.openings import name_person
from serving.workers import COOKIE

FRESH = 0.1  # seconds for which what was read is told to all who ask
ROUTE = "/class-news"


class News:
    """What was read last, and who was noted as present when."""

    def __init__(self) -> None:
        self.read, self.versions = 0.0, dict[str, tuple[int, int]]()
        self.seen = dict[str, float]()

    def tell(self, code: str, cookie: str) -> tuple[int, int] | None:
        store, now = open_classes(CLASSES_FILE), monotonic()
        if now - self.read > FRESH:
            self.read, self.versions = now, store.versions()
        if code in self.versions and cookie and now - self.seen.get(cookie, -HERE) > HERE / 3:
            self.seen = {one: at for one, at in self.seen.items() if now - at < HERE} | {cookie: now}
            if store.learner_of(code, name_person(cookie)):  # whoever else asks takes no lock
                store.see(code, name_person(cookie))
        return self.versions.get(code)


news = News()


async def tell_news(request: Request) -> Response:
    code, cookie = request.query_params.get("room", "")[:8], request.cookies.get(COOKIE, "")
    found = await run_in_threadpool(news.tell, code, cookie)
    if found is None:
        return JSONResponse({"version": "over"})
    version, heard = found
    return JSONResponse({"version": f"{version}.{heard}" if request.query_params.get("all") else str(version)})
