"""The name by which a browser is known."""

from __future__ import annotations

import re

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.workers import COOKIE, here

FOREIGN = "Secure; SameSite=None; Partitioned"  # how a browser keeps a cookie in a frame of another site


VALUE = re.compile(r"[0-9a-f]{32}")


def cookie_of(value: str, foreign: bool = False, name: str = COOKIE, secure: bool = False) -> str:
    kept = FOREIGN if foreign else "Secure; SameSite=Lax" if secure else "SameSite=Lax"
    return f"{name}={value}; Path=/; Max-Age=31536000; HttpOnly; {kept}"


class VisitorCookie:
    """Gives each browser a random name, by which a run is known to belong to whoever started it, and another one in
    place of what is no such name."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope) if scope["type"] == "http" else None
        if connection is None or VALUE.fullmatch(connection.cookies.get(COOKIE, "")):
            return await self.app(scope, receive, send)

        secure = "https" in (scope["scheme"], connection.headers.get("x-forwarded-proto"))

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append("set-cookie", cookie_of(here.new_name(), secure=secure))
            await send(message)

        await self.app(scope, receive, send_named)
