"""Refuses what is sent to a name that is not this server's, before anything else looks at it."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from server.library.hosts import is_ours, name_of
from server.settings import ADDRESS

REFUSED = 421  # Misdirected Request
SENTENCE = (
    "Loupe does not answer to the name {name!r}: open it by its number or as localhost, or, if that is its name, set "
    "LOUPE_ADDRESS, or address in loupe.toml, to the address by which others reach this server.\n"
)


class OwnNames:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            hosts = Headers(scope=scope).getlist("host")
            if len(hosts) > 1 or not all(is_ours(host, ADDRESS) for host in hosts):  # a browser sends one
                said = SENTENCE.format(name=name_of(hosts[0])[:80])
                return await PlainTextResponse(said, REFUSED)(scope, receive, send)
        await self.app(scope, receive, send)
