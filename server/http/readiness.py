"""Whether this process lives, and whether it takes visitors: not while it warms up, and no new ones while it drains."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from server.http.storage import storage

ALIVE, READY = "/healthz", "/readyz"
AGAIN = {"retry-after": "5"}  # seconds
RESTARTS = "Loupe is being restarted; reload this page in a moment."


class Readiness:
    """`warming` ends once a first visitor can be served, with an error where that failed; None: it needs no warm-up."""

    def __init__(self) -> None:
        self.warming: asyncio.Task[None] | None = None
        self.draining = False

    @property
    def state(self) -> str:
        if self.draining:
            return "draining"
        return "ready" if self.warming is None or self.warming.done() else "warming up"

    async def wait(self) -> None:
        """Until the warm-up is over. Raises what it raised."""
        if self.warming is not None:
            await asyncio.shield(self.warming)


readiness = Readiness()


async def tell_alive(request: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


async def tell_ready(request: Request) -> JSONResponse:
    state = readiness.state
    fault = await storage.find_fault() if state == "ready" else state
    return JSONResponse({"status": fault}, 503, AGAIN) if fault else JSONResponse({"status": state})


class Gate:
    """Lets everybody but the two probes wait for the end of the warm-up, and nobody begin while this process drains."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and scope["path"] not in (ALIVE, READY):
            await readiness.wait()
            if readiness.draining and begins(scope):
                return await PlainTextResponse(RESTARTS, 503, AGAIN)(scope, receive, send)
        await self.app(scope, receive, send)


def begins(scope: Scope) -> bool:
    """Tells whether a request opens a page, or the connection of one."""
    return scope["type"] == "websocket" or "text/html" in Headers(scope=scope).get("accept", "")
