"""Addresses of the API: who may ask, how much at a time, and a description of all of it (OpenAPI)."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from server.http.api import completions
from server.http.api.fields import Fields, Refused, read_request, write_schema
from server.http.api.models import describe, list_names
from server.http.api.trace import FIELDS as TRACE
from server.http.api.trace import trace
from server.http.first_load import base
from server.settings import ADDRESS, API_TOKEN

TOKEN = "LOUPE_API_TOKEN"  # by which a process tells those that it starts
MOST_BODY = 2**20  # bytes of a request
AT_ONCE = 2  # requests that compute in a process, so that its pages go on
MOST_WAITING = 32  # requests that are there besides
AGAIN = {"retry-after": "2"}  # seconds
POSTED: dict[str, tuple[str, Fields, str]] = {
    "/api/trace": ("Runs a model on a text; the values that it kept", TRACE, "application/octet-stream"),
    "/v1/completions": ("Goes on with a text, as OpenAI's", completions.COMPLETION, "application/json"),
    "/v1/chat/completions": ("Answers in a chat, as OpenAI's", completions.CHAT, "application/json"),
}
GOT = {"/api/models": "What models are here", "/v1/models": "The same", "/v1/models/{name}": "One of them"}
Handler = Callable[[Request], Awaitable[Response]]
T = TypeVar("T")


def choose_token() -> str:
    """The token of the settings, else a new one, which is said once and told to the processes that are started."""
    if API_TOKEN:
        return API_TOKEN
    os.environ[TOKEN] = secrets.token_urlsafe(24)
    print(f"The API asks for the token {os.environ[TOKEN]}", flush=True)
    return os.environ[TOKEN]


class Turns:
    """Requests that are in this process: `AT_ONCE` compute, in threads, and the others wait."""

    def __init__(self) -> None:
        self.free, self.here = asyncio.Semaphore(AT_ONCE), 0

    @asynccontextmanager
    async def enter(self) -> AsyncIterator[None]:
        """Raises Refused where too many are here."""
        if self.here >= AT_ONCE + MOST_WAITING:
            raise Refused(f"{self.here} requests are being answered here; ask again in a moment.", 429)
        self.here += 1
        try:
            yield
        finally:
            self.here -= 1

    async def take(self, work: Callable[..., T], *given: Any) -> T:
        async with self.free:
            return await run_in_threadpool(work, *given)


class Api:
    """`token` is what a request has to bring."""

    def __init__(self, token: str) -> None:
        self.expected, self.turns = f"Bearer {token}".encode(), Turns()

    def guard(self, handler: Handler) -> Handler:
        """Answers what is refused in OpenAI's form, who has no token first of all."""

        async def answer(request: Request) -> Response:
            try:
                said = request.headers.get("authorization", "").encode()
                if not secrets.compare_digest(said, self.expected):
                    told = "got another one" if said else "got none"
                    raise Refused(f"the header Authorization must be Bearer and the token of this server, {told}.", 401)
                return await handler(request)
            except Refused as error:
                headers = {401: {"www-authenticate": "Bearer"}, 429: AGAIN}.get(error.status)
                return JSONResponse(error.body, error.status, headers)

        return answer

    async def tell_models(self, request: Request) -> Response:
        def tell() -> list[dict[str, Any]]:
            return [describe(name) for name in list_names()]

        return JSONResponse({"object": "list", "data": await run_in_threadpool(tell)})

    async def tell_model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in await run_in_threadpool(list_names):
            raise Refused(f"there is no model {name[:80]!r} here; GET /v1/models lists what there is.", 404, "model")
        return JSONResponse(await run_in_threadpool(describe, name))

    async def trace(self, request: Request) -> Response:
        asked = read_request(TRACE, await read_body(request))
        async with self.turns.enter():
            found = await self.turns.take(trace, asked, address(request))
        link = {"link": f'<{found.link}>; rel="alternate"', "x-loupe-link": found.link} if found.link else {}
        return Response(found.body, headers=link, media_type="application/octet-stream")

    async def complete(self, request: Request) -> Response:
        chat = request.url.path.endswith("/chat/completions")
        asked = read_request(completions.CHAT if chat else completions.COMPLETION, await read_body(request))
        if not asked["stream"]:
            async with self.turns.enter():
                writing = await self.turns.take(completions.prepare, asked, chat)
                written = await self.gather(request, completions.write_all(writing))
                told = await run_in_threadpool(completions.reply, writing, written, address(request))
                return JSONResponse(told)
        chunks = self.stream(asked, chat, address(request))
        first = await anext(chunks)  # what is refused is answered as such
        return StreamingResponse(tell(first, chunks), 200, {"cache-control": "no-store"}, "text/event-stream")

    async def gather(self, request: Request, parts: Iterator[T]) -> list[T]:
        """All of them, while somebody waits for them; each takes a turn of its own."""
        found = list[T]()
        while (part := await self.turns.take(next, parts, None)) is not None:
            if await request.is_disconnected():
                raise Refused("the connection was closed before the answer was there.")
            found.append(part)
        return found

    async def stream(self, asked: dict[str, Any], chat: bool, place: str) -> AsyncIterator[dict[str, Any]]:
        async with self.turns.enter():
            writing = await self.turns.take(completions.prepare, asked, chat)
            chunks: Iterator[dict[str, Any]] = completions.stream(writing, place)
            while (chunk := await self.turns.take(next, chunks, None)) is not None:
                yield chunk


async def tell(first: dict[str, Any], chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
    """Server-sent events; an error that comes late is the last of them."""
    try:
        yield f"data: {json.dumps(first)}\n\n"
        async for chunk in chunks:
            yield f"data: {json.dumps(chunk)}\n\n"
    except Refused as error:
        yield f"data: {json.dumps(error.body)}\n\n"
    else:
        yield "data: [DONE]\n\n"


async def read_body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MOST_BODY:
            raise Refused(f"a request must have at most {MOST_BODY:,} bytes, got more; send less.", 413)
    return body


def address(request: Request) -> str:
    """This server's, as others reach it."""
    return ADDRESS.rstrip("/") or f"{request.url.scheme}://{request.url.netloc}{base()}"


async def tell_description(request: Request) -> Response:
    return JSONResponse(write_description())


def write_description() -> dict[str, Any]:
    refused = {"description": "Refused; the sentence says why", "content": {"application/json": {}}}
    answers = {"default": refused, "200": {"description": "Answered"}}
    paths: dict[str, Any] = {path: {"get": {"summary": about, "responses": answers}} for path, about in GOT.items()}
    named = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    paths["/v1/models/{name}"]["parameters"] = [named]
    for path, (about, fields, form) in POSTED.items():
        body = {"required": True, "content": {"application/json": {"schema": write_schema(fields)}}}
        told = {**answers, "200": {"description": "Answered", "content": {form: {}}}}
        paths[path] = {"post": {"summary": about, "requestBody": body, "responses": told}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Loupe", "version": "1"},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": paths,
    }


def api_routes(token: str) -> list[Route]:
    api = Api(token)
    return [
        Route("/api/openapi.json", tell_description),
        Route("/api/models", api.guard(api.tell_models)),
        Route("/v1/models", api.guard(api.tell_models)),
        Route("/v1/models/{name:path}", api.guard(api.tell_model)),
        Route("/api/trace", api.guard(api.trace), methods=["POST"]),
        Route("/v1/completions", api.guard(api.complete), methods=["POST"]),
        Route("/v1/chat/completions", api.guard(api.complete), methods=["POST"]),
    ]
