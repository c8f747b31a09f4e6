"""The name by which a browser is known."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.http.workers import COOKIE, here

FOREIGN = "Secure; SameSite=None; Partitioned"  # how a browser keeps a cookie in a frame of another site


def cookie_of(value: str, foreign: bool = False, name: str = COOKIE) -> str:
    return f"{name}={value}; Path=/; Max-Age=31536000; HttpOnly; {FOREIGN if foreign else 'SameSite=Lax'}"


class VisitorCookie:
    """Gives each browser a random name, by which a run is known to belong to whoever started it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or COOKIE in HTTPConnection(scope).cookies:
            return await self.app(scope, receive, send)

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    headers.append("set-cookie", cookie_of(here.new_name()))
            await send(message)

        await self.app(scope, receive, send_named)
