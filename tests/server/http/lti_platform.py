"""A platform of LTI 1.3, as small as tests need one: a key, tokens, a place for scores, and a course in a browser."""

import json
import socket
import time
from asyncio import sleep
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from html import escape
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, quote

import jwt
import uvicorn
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from jwt.algorithms import RSAAlgorithm
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from server.lti.platforms import CLAIM, DEEP_CLAIM, DEEP_LINKING, ENDPOINT, LINK, SCORE

LOUPE = "https://loupe.test"
KEYS = {name: generate_private_key(65537, 2048) for name in ("right", "wrong")}
PAGE = "/course?lesson=averaging"
ASKED = f"{DEEP_CLAIM}deep_linking_settings"
# Opens Loupe's registration in a window, which closes once Loupe says so.
REGISTERING = """<!doctype html><button>Register</button><script>
document.querySelector("button").onclick = () => { const opened = open(ADDRESS); addEventListener("message", (said) => {
  if (said.source === opened && said.data.subject === "org.imsglobal.lti.close") opened.close(); }); };
</script>"""


@dataclass
class Platform:
    """Knows Loupe as "loupe", and compares times of scores in whole seconds, as Moodle does; `broken` takes no score,
    and `stuck` answers none yet."""

    address: str = ""
    broken: bool = False
    stuck: bool = False
    times: dict[tuple[str, str], datetime] = field(default_factory=dict)  # of the last score, by address and user
    odd: Response | dict[str, Any] = field(default_factory=dict)  # in place of its configuration, or of parts
    answer: dict[str, Any] = field(default_factory=dict)  # to who registers
    tool: dict[str, Any] = field(default_factory=dict)
    loupe: str = LOUPE
    links: dict[str, dict[str, Any]] = field(default_factory=dict)  # of the course, by their names: claims
    chosen: list[dict[str, Any]] = field(default_factory=list)  # claims of answers to who asked to choose
    slow: bool = False
    refused: int = 0  # scores that were not later than the last
    heard: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)  # address, bearer, body
    asked: list[dict[str, str]] = field(default_factory=list)  # for a token
    asked_for_keys: int = 0

    async def keys(self, _request: Request) -> Response:
        self.asked_for_keys += 1
        key = RSAAlgorithm.to_jwk(KEYS["right"].public_key(), as_dict=True)
        return JSONResponse({"keys": [{**key, "kid": "one", "alg": "RS256"}]})

    async def token(self, request: Request) -> Response:
        self.asked.append(dict(parse_qsl((await request.body()).decode())))
        return JSONResponse({"access_token": "open sesame"})

    async def scores(self, request: Request) -> Response:
        content, at = await request.json(), str(request.url)
        line, time = (at, content["userId"]), datetime.fromisoformat(content["timestamp"])
        while self.stuck:
            await sleep(0.01)
        if self.broken:
            return Response(status_code=500)
        if line in self.times and int(time.timestamp()) <= int(self.times[line].timestamp()):
            self.refused += 1
            return Response(status_code=409)
        self.times[line] = time
        self.heard.append((at, request.headers["authorization"], content))
        return Response(status_code=200)

    async def configuration(self, _request: Request) -> Response:
        named = {"authorization": "auth", "token": "token", "registration": "register"}
        places = {f"{name}_endpoint": f"{self.address}/{place}" for name, place in named.items()}
        content = {"issuer": self.address, "jwks_uri": f"{self.address}/keys", "authorization_server": "here", **places}
        return self.odd if isinstance(self.odd, Response) else JSONResponse(content | self.odd)

    async def register(self, request: Request) -> Response:
        if request.headers.get("authorization") != "Bearer once":
            return Response(status_code=401)
        self.tool = await request.json()
        return JSONResponse({**self.tool, "client_id": "fresh"} | self.answer)

    def claims(self, nonce: str, **more: Any) -> dict[str, Any]:
        """Of a learner's launch; `more` by the ends of their names."""
        made = {
            "iss": self.address, "aud": "loupe", "sub": "u1", "iat": time.time(), "exp": time.time() + 300,
            "nonce": nonce, "name": "Ada Lovelace", f"{CLAIM}message_type": "LtiResourceLinkRequest",
            f"{CLAIM}version": "1.3.0", f"{CLAIM}deployment_id": "7", f"{CLAIM}custom": {"page": PAGE[1:]},
            f"{CLAIM}target_link_uri": f"{LOUPE}/lti/launch",
            f"{CLAIM}roles": ["http://purl.imsglobal.org/vocab/lis/v2/membership#Learner"],
            ENDPOINT: {"scope": [SCORE], "lineitem": f"{self.address}/line/3?type=5"},
        }  # fmt: skip
        return made | {CLAIM + name if CLAIM + name in made else name: value for name, value in more.items()}

    # --- what a browser sees ---

    async def registering(self, _request: Request) -> Response:
        query = f"openid_configuration={quote(f'{self.address}/configuration')}&registration_token=once"
        return HTMLResponse(REGISTERING.replace("ADDRESS", json.dumps(f"{self.loupe}/lti/register?{query}")))

    async def course(self, _request: Request) -> Response:
        """The course: each link opens in a frame of the page, as Moodle and Canvas do it."""
        said = {"iss": self.address, "client_id": "fresh", "target_link_uri": f"{self.loupe}/lti/launch"}
        forms = "".join(
            form(
                f"{self.loupe}/lti/login", said | {"login_hint": "1", "lti_message_hint": name}, name, ' target="tool"'
            )
            for name in self.links
        )
        style = "body { margin: 0 } iframe { border: 0; width: 100%; height: 90vh; display: block }"
        return HTMLResponse(
            f"<!doctype html><meta name=viewport content=width=device-width><style>{style}</style>"
            f'{forms}<iframe name="tool"></iframe>'
        )

    async def auth(self, request: Request) -> Response:
        """Signs what a link of the course says, and lets the browser post it; of `slow`, once a button is pressed."""
        asked = request.query_params
        claims = self.claims(asked["nonce"], aud=asked["client_id"], **self.links[asked["lti_message_hint"]])
        token = jwt.encode(claims, KEYS["right"], "RS256", {"kid": "one"})
        posted = form(asked["redirect_uri"], {"state": asked["state"], "id_token": token}, "Go on")
        at_once = "" if self.slow else "<script>document.forms[0].submit()</script>"
        return HTMLResponse(f"<!doctype html>{posted}{at_once}")

    async def back(self, request: Request) -> Response:
        """Makes links of the course of what was chosen."""
        token = dict(parse_qsl((await request.body()).decode()))["JWT"]
        said = jwt.decode(token, options={"verify_signature": False})
        self.chosen.append(said)
        for item in said[f"{DEEP_CLAIM}content_items"]:
            self.links[item["title"]] = {"custom": item["custom"], "target_link_uri": item["url"]}
        return HTMLResponse("<!doctype html><p>Placed")

    def choosing(self) -> dict[str, Any]:
        """Claims of a launch that asks a teacher to choose."""
        asked = {"accept_types": [LINK], "deep_link_return_url": f"{self.address}/back", "data": "{opaque}"}
        return {"message_type": DEEP_LINKING, ASKED: asked}


def form(address: str, fields: dict[str, str], label: str, more: str = "") -> str:
    inputs = "".join(f'<input type="hidden" name="{name}" value="{escape(value)}">' for name, value in fields.items())
    return f'<form method="post" action="{escape(address)}"{more}>{inputs}<button>{escape(label)}</button></form>'


@contextmanager
def served_platform(host: str = "127.0.0.1") -> Iterator[Platform]:
    made = Platform()
    app = Starlette(routes=[
        Route("/keys", made.keys), Route("/token", made.token, methods=["POST"]),
        Route("/line/3/scores", made.scores, methods=["POST"]), Route("/configuration", made.configuration),
        Route("/register", made.register, methods=["POST"]), Route("/registering", made.registering),
        Route("/course", made.course), Route("/auth", made.auth), Route("/back", made.back, methods=["POST"]),
    ])  # fmt: skip
    with socket.create_server(("127.0.0.1", 0)) as listening:
        made.address = f"http://{host}:{listening.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            yield made
        finally:
            server.should_exit = True
            thread.join()
