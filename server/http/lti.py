"""How a platform such as Moodle or Canvas opens Loupe (LTI 1.3): its browser comes to /lti/login, goes to the platform
and comes back to /lti/launch with a signed token, and from there by /lti/open to a page.

The step in between is there for the visitor's cookie, which a browser does not send with what another site posts. In a
frame of the platform /lti/login first looks, by /lti/kept, whether the browser keeps cookies there; where it does not,
the launch begins anew in a window. Where the platform asks to choose, /lti/choose waits in its frame for what a teacher
chooses at /teach, and then posts it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Mapping
from html import escape
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from pages.controls.menu import entries
from server.classes.store import open_classes
from server.http.headers import FRAMES, write_policy
from server.http.visitor_cookie import FOREIGN, cookie_of
from server.http.workers import COOKIE, here
from server.library.visitors import name_person
from server.lti.launches import find_launch, keep_launch, open_launch
from server.lti.linking import find_linking, keep_linking
from server.lti.platforms import (
    CLAIM,
    DEEP_LINKING,
    LEEWAY,
    Settings,
    grade_address,
    origin_of,
    read_launch,
    read_linking,
    read_settings,
    write_answer,
)
from server.lti.registration import add_registered, register
from server.settings import CLASSES_PLACE, FRAME_ANCESTORS, LTI_FILE

STATE = "loupe_lti_"  # the cookie of one launch, by its state
SECRET = re.compile(r"[0-9a-f]{32}")
MOST = 2**16  # bytes of what is posted
LASTS = 600  # seconds from login to launch
# Where the page is still the same, its focus stays.
LOOK_AGAIN = "setInterval(async () => { if ((await fetch(location.href)).status !== 202) location.reload(); }, 2000)"
# Goes on to the platform where the cookie is kept, and else shows the link that opens a window.
GO_ON = """const [on, anew] = document.links
fetch(anew.dataset.kept).then(({ ok }) => ok ? location.replace(on.href) : (anew.closest("p").hidden = false))"""
STYLE = """:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
body { margin: 1.5rem auto; max-width: 40rem; padding: 0 1rem }
button { font: inherit; padding: 0.4rem 1rem }"""
CLOSE = '(window.opener || window.parent).postMessage({ subject: "org.imsglobal.lti.close" }, "*")'
Fields = Mapping[str, str]
Handler = Callable[[Settings, Request, Fields], Response]


class ForeignState(ValueError):
    """A launch that began in no browser, or in another one."""


def lti_routes() -> list[Route]:
    """None without a settings file. Raises ValueError for one that does not say what it should."""
    if not LTI_FILE:
        return []
    settings = read_settings(LTI_FILE)
    keys = JSONResponse({"keys": [settings.public_key]})
    return [
        Route("/lti/login", answering(settings, login), methods=["GET", "POST"]),
        Route("/lti/launch", answering(settings, launch), methods=["POST"]),
        Route("/lti/kept", answering(settings, keeps_state)),
        Route("/lti/open", answering(settings, open_page)),
        Route("/lti/choose", answering(settings, choose)),
        Route("/lti/register", answering(settings, register_platform)),
        Route("/lti/keys", lambda _request: keys),
    ]


def answering(settings: Settings, handle: Handler) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        fields, body = dict(request.query_params), b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST:
                return refuse(f"expected at most {MOST:,} bytes, got more; open it anew.", 400)
        try:
            fields |= dict(parse_qsl(body.decode(), max_num_fields=100))
            return await run_in_threadpool(lambda: handle(with_registered(settings), request, fields))
        except ForeignState as error:
            return refuse(error, 401)
        except ValueError as error:
            return refuse(error, 401 if handle is launch else 400)

    return answer


def refuse(error: ValueError | str, status: int) -> Response:
    return small_page(f"<p>Loupe {escape(str(error), quote=False)}</p>", status=status)


def with_registered(settings: Settings) -> Settings:
    return add_registered(settings, open_classes(CLASSES_PLACE))


def login(settings: Settings, request: Request, fields: Fields) -> Response:
    """Sends the browser to its platform, with a state that it keeps as a cookie and a nonce that follows from it."""
    platform, state = settings.find(fields.get("iss", ""), fields.get("client_id", "")), secrets.token_hex(16)
    query = {name: fields[name] for name in ("login_hint", "lti_message_hint") if name in fields}
    if "login_hint" not in query:
        raise ValueError("expected a login_hint of the platform, got none; open it from the course.")
    query |= {
        "scope": "openid", "response_type": "id_token", "response_mode": "form_post", "prompt": "none",
        "client_id": platform.client_id, "redirect_uri": f"{settings.address}/lti/launch",
        "state": state, "nonce": nonce_of(state),
    }  # fmt: skip
    place = f"{platform.auth_url}{'&' if urlsplit(platform.auth_url).query else '?'}{urlencode(query)}"
    anew = f"{settings.address}/lti/login?{urlencode(fields)}"
    answer: Response = RedirectResponse(place, 303)
    if is_framed(request):
        answer = small_page(
            f'<a href="{escape(place)}" hidden></a><p hidden>This browser keeps no cookie of Loupe in a frame of '
            f'another site: <a href="{escape(anew)}" data-kept="kept?state={state}" target="_blank" rel="noopener">'
            "open it in a window of its own</a>.</p>",
            GO_ON,
        )
    answer.headers.append("set-cookie", state_cookie(settings, state, LASTS))
    return answer


def is_framed(request: Request) -> bool:
    return request.headers.get("sec-fetch-dest") in ("iframe", "frame")


def is_foreign(request: Request) -> bool:
    """Whether a browser sends from there only cookies that say so; they would stand beside the others elsewhere."""
    return is_framed(request) and request.headers.get("sec-fetch-site") == "cross-site"


def keeps_state(settings: Settings, request: Request, fields: Fields) -> Response:
    check_state(settings, request, fields)
    return Response(status_code=204)


def state_cookie(settings: Settings, state: str, seconds: int) -> str:
    """Of a launch that another site posts; plain http has such cookies only where browsers trust the address."""
    sent = FOREIGN if origin_of(settings.address) else "SameSite=Lax"
    return f"{STATE}{state}={sign_state(settings, state)}; Path=/lti; Max-Age={seconds}; HttpOnly; {sent}"


def sign_state(settings: Settings, state: str) -> str:
    """What only this server can have given a browser with a state, so that nobody's own states cost it requests."""
    secret = settings.key.private_numbers().d
    return hmac.new(secret.to_bytes(512, "big"), state.encode(), "sha256").hexdigest()


def nonce_of(state: str) -> str:
    return hashlib.sha256(state.encode()).hexdigest()


def check_state(settings: Settings, request: Request, fields: Fields) -> str:
    state = fields.get("state", "")
    signed = request.cookies.get(STATE + state, "")
    if not SECRET.fullmatch(state) or not hmac.compare_digest(signed.encode(), sign_state(settings, state).encode()):
        raise ForeignState(
            "expected a launch that began in this browser within ten minutes, got another; open it from the course "
            "again, in a window of its own, or with cookies allowed."
        )
    return state


def launch(settings: Settings, request: Request, fields: Fields) -> Response:
    """Keeps what a platform's token says, once it holds."""
    state = check_state(settings, request, fields)
    if "id_token" not in fields:
        raise ValueError(f"expected a token, got {fields.get('error', 'none')[:80]!r}; log in to the platform first.")
    platform, content = read_launch(settings, fields["id_token"], nonce_of(state))
    classes, until = open_classes(CLASSES_PLACE), max(float(content["exp"]), time.time()) + LEEWAY
    if content[f"{CLAIM}message_type"] == DEEP_LINKING:
        keep_linking(classes, state, str(content["nonce"]), until, read_linking(platform, content))
        answer = RedirectResponse(f"{settings.address}/lti/choose?state={state}", 303)
        answer.headers.append("set-cookie", state_cookie(settings, state, 0))
        return answer
    name = content.get("name") if settings.names else None
    keep_launch(
        classes, state, str(content["nonce"]), until,
        issuer=platform.issuer, client=platform.client_id, user=str(content.get("sub") or ""),
        lineitem=grade_address(content), page=find_page(settings, content), name=str(name or "")[:80],
    )  # fmt: skip
    answer = RedirectResponse(f"{settings.address}/lti/open?state={state}", 303)
    if is_framed(request):
        shown = content.get(f"{CLAIM}launch_presentation")
        back = str(shown.get("return_url") or "") if isinstance(shown, dict) else ""
        # Canvas in a cloud has one issuer for many sites.
        sites = {site for said in (platform.issuer, back) if (site := origin_of(said))}
        answer.headers.append("set-cookie", cookie_of("|".join(sorted(sites)), is_foreign(request), FRAMES))
    return answer


def find_page(settings: Settings, content: Mapping[str, Any]) -> str:
    """The path and query of the page that a launch asks for: its own parameter `page`, else its target, else the first
    page. Raises ValueError for what is none of Loupe's pages."""
    custom, target = content.get(f"{CLAIM}custom"), str(content.get(f"{CLAIM}target_link_uri") or "")
    said = str(custom.get("page") or "") if isinstance(custom, dict) else ""
    if not said and not urlsplit(target).path.endswith(("/lti/launch", "/lti/login")):
        said = target.removeprefix(settings.address)
    parts = urlsplit(said)
    path = parts.path.removeprefix("/")
    if parts.scheme or parts.netloc or path not in {"", *(one.address for one in entries())}:
        raise ValueError(f"expected a page of its own, such as course?lesson=averaging, got {said[:80]!r}; correct it.")
    query = urlencode(parse_qsl(parts.query))
    return f"/{path}?{query}" if query else f"/{path}"


def choose(settings: Settings, request: Request, fields: Fields) -> Response:
    """Waits for what a teacher chooses in a window of its own; then the browser posts it to its platform."""
    state = fields.get("state", "")
    linking, title, page = find_linking(open_classes(CLASSES_PLACE), state)
    if not page:
        query = urlencode({"linking": state} | ({"lang": linking.language} if linking.language else {}))
        return small_page(
            f'<p><a href="{escape(settings.address)}/teach?{escape(query)}" target="_blank" rel="noopener">Choose in '
            "Loupe</a>, in a window of its own, what opens in your course. This page goes on by itself.</p>",
            LOOK_AGAIN,
            linking.origin,
            202,
        )
    token = write_answer(settings, linking, title, page)
    return small_page(
        f'<form method="post" action="{escape(linking.address)}"><input type="hidden" name="JWT" value="{token}">'
        f"<button>Place “{escape(title)}”</button></form>",
        "document.forms[0].submit()",
        linking.origin,
    )


def register_platform(settings: Settings, request: Request, fields: Fields) -> Response:
    """Registers Loupe at the platform from which an administrator opens this address."""
    configuration, token = fields.get("openid_configuration", ""), fields.get("registration_token", "")
    platform = register(settings, open_classes(CLASSES_PLACE), configuration, token)
    return small_page(f"<p>Loupe is registered at {escape(platform.issuer)}; this window can be closed.</p>", CLOSE)


def small_page(body: str, script: str = "", origin: str = "", status: int = 200) -> Response:
    """A page of a few words, of which `script` is all that runs. It may stand in frames of the platform at `origin`, to
    which alone its form goes; without one, where there is nothing to press that a link would not do, in all."""
    nonce = secrets.token_urlsafe(16)
    may = {
        "default-src": "'none'",
        "script-src": f"'nonce-{nonce}'",
        "style-src": f"'nonce-{nonce}'",
        "connect-src": "'self'",
        "form-action": origin or "'none'",
        "base-uri": "'none'",
    }
    return HTMLResponse(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Loupe</title>'
        '<meta name="viewport" content="width=device-width">'
        f'<style nonce="{nonce}">{STYLE}</style>{body}'
        + (f'<script nonce="{nonce}">{script}</script>' if script else ""),
        status,
        headers={
            "content-security-policy": write_policy(f"{FRAME_ANCESTORS} {origin or '*'}", may),
            "cache-control": "no-store",
            "referrer-policy": "origin",  # else the platform would not be told who posts
        },
    )


def open_page(settings: Settings, request: Request, fields: Fields) -> Response:
    """Gives a launch to the visitor of this browser, who is another one where somebody else came by it before."""
    state, token = check_state(settings, request, fields), request.cookies.get(COOKIE, "")
    classes, known = open_classes(CLASSES_PLACE), bool(SECRET.fullmatch(token))
    page, others = find_launch(classes, state, name_person(token) if known else "")
    if others or not known:
        known, token = False, here.new_name()
    open_launch(classes, state, name_person(token))
    # A connection stays with one process, which may be none of this visitor's: the next one is dealt by the cookie.
    answer = RedirectResponse(settings.address + page, 303, {"connection": "close"})
    answer.headers.append("set-cookie", state_cookie(settings, state, 0))
    if not known:
        answer.headers.append("set-cookie", cookie_of(token, is_foreign(request)))
    return answer
