"""What a browser is told that a page may do; docs/operation.md says what Streamlit does not allow to forbid."""

from __future__ import annotations

import re
from collections.abc import Mapping

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.settings import FRAME_ANCESTORS

FRAMES = "loupe_frames"  # cookie of the sites in whose frame a learner opened Loupe, as server/http/lti.py writes it
SITES = re.compile(r"https?://[\w.:-]+(\|https?://[\w.:-]+)?", re.ASCII)
SOURCE = re.compile(r"[^\s;,]+")
# Streamlit's own page has scripts within it, its parts write styles, and charts are compiled as they are drawn.
POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "media-src": "'self' data: blob:",
    "connect-src": "'self' data: blob:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}


def write_policy(ancestors: str, directives: Mapping[str, str] = POLICY) -> str:
    """The policy of a page that may stand in frames of `ancestors`, separated by spaces, beside its own address.

    Raises SystemExit, with a sentence, for what would end the directive.
    """
    if not all(map(SOURCE.fullmatch, ancestors.split())):
        raise SystemExit(
            "frame_ancestors must be addresses separated by spaces, such as https://moodle.school.example, "
            f"got {ancestors!r}; correct it."
        )
    directives = {**directives, "frame-ancestors": f"'self' {ancestors}".strip()}
    return "; ".join(f"{name} {sources}" for name, sources in directives.items())


def allow(sites: str) -> str:
    return write_policy(f"{FRAME_ANCESTORS} {sites.replace('|', ' ')}")


class SecurityHeaders:
    """Says with every HTML answer what a page may do, unless it does so itself."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.headers = {
            "x-content-type-options": "nosniff",
            "referrer-policy": "same-origin",
            "content-security-policy": write_policy(FRAME_ANCESTORS),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_told(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if headers.get("content-type", "").startswith("text/html"):
                    said = HTTPConnection(scope).cookies.get(FRAMES, "")
                    own = {"content-security-policy": allow(said)} if SITES.fullmatch(said) else {}
                    for name, value in (self.headers | own).items():
                        headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, send_told if scope["type"] == "http" else send)
