"""Files that browsers bring lie in memory: how much a visitor and all together may bring, and that files go whose
session has gone; and, on disk, what visitors brought and class sessions that are old."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from time import monotonic

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from streamlit.runtime import get_instance
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.runtime.uploaded_file_manager import UploadedFileRec

from engine.checkpoints.memory import gigabytes
from engine.training.run.visitor_texts import expire_texts
from server.classes.store import Unreachable, keeps_classes, open_classes
from server.settings import ALL_UPLOADS, CLASSES_PLACE, SESSION_UPLOADS

READ = {
    "memory_uploaded_file_manager:MemoryUploadedFileManager.add_file": "c40823a61c504ba4",
    "memory_uploaded_file_manager:MemoryUploadedFileManager.remove_session_files": "0d4d6dc65a229c56",
    "streamlit.web.server.starlette.starlette_routes:create_upload_routes": "e938e18a478883ee",
}
PREFIX = "/_stcore/upload_file/"
COMES_BACK = 180.0  # seconds for which a session is kept that has lost its connection, and some more
PACE = 30.0  # seconds between two looks for sessions that have gone
EXPIRES = 3600.0  # seconds between two looks for what is old
TELL = (
    "The files of {who} may have {most} here, and this one would make it {size}: remove one, bring a smaller one, or "
    "ask who runs this server to raise {setting}.\n"
)


def find_manager() -> MemoryUploadedFileManager:
    manager = get_instance().uploaded_file_mgr
    assert isinstance(manager, MemoryUploadedFileManager)
    return manager


class UploadLimit:
    """Refuses a file that would be too much by the length that its request declares, before any of it is read; those
    that are on their way count too."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self.coming = app, Counter[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "PUT" or PREFIX not in scope["path"]:
            return await self.app(scope, receive, send)
        session = scope["path"].rpartition(PREFIX)[2].split("/")[0]
        length = Headers(scope=scope).get("content-length", "")
        if not length.isascii() or not length.isdigit() or len(length) > 18:
            return await PlainTextResponse("An upload must say how long it is.\n", 411)(scope, receive, send)
        if refusal := self.refuse(session, int(length)):
            return await PlainTextResponse(refusal, 413)(scope, receive, send)
        self.coming[session] += int(length)
        try:
            await self.app(scope, receive, send)
        finally:
            self.coming[session] -= int(length)
            self.coming += Counter()  # without those that are 0

    def refuse(self, session: str, length: int) -> str:
        """A sentence where the file is too much; "" where it may come."""
        held = (
            Counter({one: sum(len(file.data) for file in files.values()) for one, files in list_files()}) + self.coming
        )
        ours, everybody = held[session] + length, held.total() + length
        if ours > SESSION_UPLOADS:
            most, size = gigabytes(SESSION_UPLOADS), gigabytes(ours)
            return TELL.format(who="a visitor", most=most, size=size, setting="session_uploads_mib")
        if everybody > ALL_UPLOADS:
            most, size = gigabytes(ALL_UPLOADS), gigabytes(everybody)
            return TELL.format(who="all visitors together", most=most, size=size, setting="all_uploads_mib")
        return ""


def list_files() -> list[tuple[str, dict[str, UploadedFileRec]]]:
    return list(find_manager().file_storage.items())


async def drop_left_files() -> None:
    """Removes, as long as the server runs, the files of sessions that do not come back, which Streamlit does only for
    those that end in good order, and what is old."""
    gone: dict[str, float] = {}
    expired = -EXPIRES
    while True:
        await asyncio.sleep(PACE)
        gone = drop_files(gone, monotonic())
        if monotonic() - expired > EXPIRES:
            expired = monotonic()
            with suppress(OSError, Unreachable):  # a storage that does not answer now is asked later
                await asyncio.to_thread(forget_old)


def forget_old() -> None:
    """Deletes texts and class sessions that are old; and the days are noted by which they age."""
    expire_texts()
    if keeps_classes(CLASSES_PLACE):
        open_classes(CLASSES_PLACE).forget_old()


def drop_files(gone: dict[str, float], now: float) -> dict[str, float]:
    """`gone` says since when each session was seen to be gone; returned is the same as it is `now`."""
    sessions = [session for session, _ in list_files() if not get_instance().is_active_session(session)]
    since = {session: gone.get(session, now) for session in sessions}
    for session in [session for session, began in since.items() if now - began >= COMES_BACK]:
        find_manager().remove_session_files(session)
        del since[session]
    return since
