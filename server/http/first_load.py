"""The first load of a page, in few waits: everything that the browser will need is named in the HTML, and comes out of
memory.

Streamlit serves its own files one by one from the disk, without compression, and asks for half of them only once its
script has said what to draw.
"""

from __future__ import annotations

import gzip
import json
import re
from functools import cache, lru_cache
from pathlib import Path

import streamlit as st
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pages.controls.menu import entries
from views.core.component import script

KEPT = "public, max-age=31536000, immutable"
# With a hash or a version in the address.
FIXED = ("/component/views.core.component.modules-", "/component/views.core.component.plotly-")
# Parts of Streamlit's browser code that it asks for once the script has said what to draw, by the start of their names:
# on most pages, and on those that show fewer. A name that is not there is passed over.
COMMON = ("BidiComponent", "Html", "PageLink", "Selectbox", "TextInput", "Button", "Slider")
PARTS = {
    "home": ("BidiComponent", "Html", "PageLink", "TextInput", "Button"),
    "course": ("BidiComponent", "Html", "PageLink", "ButtonGroup"),
    "glossary": ("Html", "Selectbox"),
}  # charts and tables, megabytes each, would hold up what is drawn first
KINDS = {"js": "text/javascript", "css": "text/css"}
CHUNK = re.compile(r"""(?:from|import)\s*["'`]\./([\w.-]+\.js)["'`]""")
# Streamlit keeps light or dark by the path at which it was chosen; here it is that of every page.
THEME = """<script>try {
  const place = `stActiveTheme-${location.pathname}-v2`, last = localStorage.getItem("loupe theme");
  if (last) localStorage.setItem(place, last);
  const before = localStorage.getItem(place);
  const keep = () => {
    const now = localStorage.getItem(place);
    if (now && now !== before) localStorage.setItem("loupe theme", now);
  };
  addEventListener("pagehide", keep);
  addEventListener("visibilitychange", keep);
} catch (error) { console.warn(error); }</script>"""  # a browser may keep nothing
STATIC = Path(st.__file__).parent / "static" / "static"


def base() -> str:
    return f"/{st.get_option('server.baseUrlPath').strip('/')}".rstrip("/")


@cache
def chunks(page: str) -> tuple[str, ...]:
    """Names of the files that a page's parts of Streamlit are made of."""
    folder = STATIC / "js"
    wanted = PARTS.get(page, COMMON)
    waiting = [path.name for part in wanted for path in folder.glob(f"{part}.*.js") if path.name.count(".") == 2]
    found: dict[str, None] = {}
    while waiting:
        name = waiting.pop(0)
        if name not in found and (folder / name).is_file():
            found[name] = None
            waiting += CHUNK.findall((folder / name).read_text(encoding="utf-8"))
    return tuple(found)


@lru_cache(maxsize=512)
def compress_file(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), 6, mtime=0)


@lru_cache(maxsize=4)
def compress_text(text: str) -> bytes:
    return gzip.compress(text.encode(), 6, mtime=0)


class FirstLoad:
    """Brings a page with few waits: what has a hash in its name comes out of memory, compressed, to be kept for good;
    and the HTML names what the page needs next, which Streamlit would ask for only once its script has run.

    It also says where the server is: Streamlit else asks below the page's own address first, in vain. And light or dark
    is the same at every address.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.files = {
            f"{base()}/static/{path.relative_to(STATIC).as_posix()}": path
            for path in STATIC.rglob("*")
            if path.suffix[1:] in KINDS
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "GET":
            return await self.app(scope, receive, send)
        response = self.from_memory(scope)
        if response:
            return await response(scope, receive, send)
        if any(scope["path"].startswith(base() + place) for place in FIXED):
            return await self.app(scope, receive, immutable(send))
        if "text/html" not in Headers(scope=scope).get("accept", ""):
            return await self.app(scope, receive, send)
        plain = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]  # to be written into
        await self.app({**scope, "headers": plain}, receive, Head(scope["path"], send, compresses(scope)).send)

    def from_memory(self, scope: Scope) -> Response | None:
        path = scope["path"]
        kind = KINDS.get(path.rpartition(".")[2])
        if kind is None or not compresses(scope):
            return None
        address, text = script()
        if path == address:
            body = compress_text(text)
        elif path in self.files:
            body = compress_file(self.files[path])
        else:
            return None
        named = {"cache-control": KEPT, "content-encoding": "gzip", "vary": "accept-encoding"}
        return Response(body, media_type=kind, headers=named)


def compresses(scope: Scope) -> bool:
    return "gzip" in Headers(scope=scope).get("accept-encoding", "")


def immutable(send: Send) -> Send:
    async def send_immutable(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 200:
            MutableHeaders(scope=message)["cache-control"] = KEPT
        await send(message)

    return send_immutable


class Head:
    """Writes into the head of an HTML answer."""

    def __init__(self, path: str, send: Send, compress: bool) -> None:
        self.compress = compress
        self.page = path.removeprefix(base()).strip("/") or entries()[0].address
        self.answer = send
        self.start: Message | None = None
        self.body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            if headers.get("content-type", "").startswith("text/html"):
                for name in ("etag", "last-modified"):  # they are of the file, which stays while what it names changes
                    del headers[name]
                self.start = message
                return
        if self.start is None:
            return await self.answer(message)
        self.body += message.get("body", b"")
        if message.get("more_body"):
            return
        # Streamlit's own files first: without them nothing is asked.
        body = self.body.replace(b"<head>", b"<head>" + self.where(), 1)
        body = body.replace(b"</head>", self.wanted() + b"</head>", 1)
        headers = MutableHeaders(scope=self.start)
        if self.compress:
            body = gzip.compress(body, 6, mtime=0)
            headers["content-encoding"], headers["vary"] = "gzip", "accept-encoding"
        headers["content-length"] = str(len(body))
        await self.answer(self.start)
        await self.answer({"type": "http.response.body", "body": body})

    def where(self) -> bytes:
        place = f"location.origin+{json.dumps(base() + '/')}"
        return f"<script>window.__streamlit={{BACKEND_BASE_URL:{place}}}</script>{THEME}".encode()

    def wanted(self) -> bytes:
        own = self.body.decode()
        named = [f"{base()}/static/js/{name}" for name in chunks(self.page) if name not in own]
        lines = [f'<link rel="modulepreload" crossorigin href="{place}">' for place in (script()[0], *named)]
        return "".join(lines).encode()
