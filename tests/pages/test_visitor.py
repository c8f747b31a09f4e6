"""The cookie by which a browser is known again, and who is at the server's own machine."""

import hashlib
from types import SimpleNamespace

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from asgi import VisitorCookie
from pages.controls.visitor import COOKIE, TOKEN, on_this_machine, visitor_name


async def page(request: object) -> HTMLResponse:
    return HTMLResponse("<p>page</p>")


async def data(request: object) -> JSONResponse:
    return JSONResponse({})


def test_a_browser_gets_one_random_name_with_its_first_page_and_keeps_it() -> None:
    app = Starlette(routes=[Route("/", page), Route("/data", data)], middleware=[Middleware(VisitorCookie)])
    client, other = TestClient(app), TestClient(app)
    assert "set-cookie" not in client.get("/data").headers
    said = client.get("/").headers["set-cookie"]
    assert "HttpOnly" in said and "SameSite=Lax" in said and TOKEN.fullmatch(client.cookies[COOKIE])
    assert "set-cookie" not in client.get("/").headers
    other.get("/")
    assert other.cookies[COOKIE] != client.cookies[COOKIE]
    assert "Secure" not in said and "Secure" in TestClient(app, "https://testserver").get("/").headers["set-cookie"]
    proxied = TestClient(app).get("/", headers={"x-forwarded-proto": "https"})
    assert "Secure" in proxied.headers["set-cookie"]
    for wrong in ("short", "<script>", "AB" * 16, "0" * 33):
        assert "set-cookie" in TestClient(app, cookies={COOKIE: wrong}).get("/").headers


def seen(monkeypatch: pytest.MonkeyPatch, address: str | None, cookie: str = "", **headers: str) -> None:
    cookies = {COOKIE: cookie} if cookie else {}
    monkeypatch.setattr(st, "context", SimpleNamespace(ip_address=address, headers=headers, cookies=cookies))


def test_a_visitors_name_is_a_hash_that_does_not_give_the_cookie_away(monkeypatch: pytest.MonkeyPatch) -> None:
    seen(monkeypatch, "10.0.0.7", "ab" * 16)
    assert visitor_name() == hashlib.sha256(b"ab" * 16).hexdigest()[:32]
    for wrong in ("", "short", "<script>", "AB" * 16):
        seen(monkeypatch, "10.0.0.7", wrong)
        assert visitor_name() == ""


@pytest.mark.parametrize(
    ("address", "headers", "here"),
    [
        ("127.0.0.1", {}, True), ("::1", {}, True), (None, {}, True), ("192.168.0.4", {}, False), ("odd", {}, False),
        ("127.0.0.1", {"x-forwarded-for": "192.168.0.4"}, False), ("127.0.0.1", {"host": "localhost:8501"}, True),
        ("127.0.0.1", {"host": "evil.example"}, False), ("127.0.0.1", {"host": "192.168.0.4:8501"}, False),
    ],
)  # fmt: skip
def test_only_a_browser_beside_the_server_is_at_the_machine(
    monkeypatch: pytest.MonkeyPatch, address: str | None, headers: dict[str, str], here: bool
) -> None:
    seen(monkeypatch, address, **headers)
    assert on_this_machine() is here
