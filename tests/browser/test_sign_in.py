"""Signing in by a provider of identities of a few lines, in a browser."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import jwt
import pytest
import uvicorn
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from jwt.algorithms import RSAAlgorithm
from playwright.sync_api import expect
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.browser.harness import PATIENCE, UVICORN, free_port, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytest.importorskip("authlib", reason="signing in needs streamlit[auth]")
KEY = generate_private_key(65537, 2048)


@pytest.fixture
def provider() -> Iterator[str]:
    """Address of one that lets everybody in as Ada."""
    nonces = dict[str, str]()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"

        async def metadata(_request: Request) -> Response:
            names = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            return JSONResponse({"issuer": address, **{name: address + place for name, place in names.items()}})

        async def authorize(request: Request) -> Response:
            asked = request.query_params
            nonces["code"] = asked.get("nonce", "")
            return RedirectResponse(f"{asked['redirect_uri']}?code=code&state={asked['state']}")

        async def token(_request: Request) -> Response:
            now = int(time.time())
            claims = {"iss": address, "aud": "loupe", "sub": "1", "email": "ada@school.example", "iat": now}
            signed = jwt.encode({**claims, "exp": now + 300, "nonce": nonces["code"]}, KEY, "RS256", {"kid": "one"})
            return JSONResponse({"access_token": "open", "token_type": "Bearer", "id_token": signed})

        async def keys(_request: Request) -> Response:
            key = RSAAlgorithm.to_jwk(KEY.public_key(), as_dict=True)
            return JSONResponse({"keys": [{**key, "kid": "one", "alg": "RS256"}]})

        app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", metadata),
                Route("/authorize", authorize),
                Route("/token", token, methods=["POST"]),
                Route("/keys", keys),
            ]
        )
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = Thread(target=server.run, args=([listening],))
        thread.start()
        yield address
        server.should_exit = True
        thread.join()


@pytest.mark.long
def test_a_page_opens_once_somebody_has_signed_in_and_closes_again(
    browser: "Browser", provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    secrets = tmp_path / ".streamlit" / "secrets.toml"
    secrets.parent.mkdir()
    secrets.write_text(
        f'[auth]\nredirect_uri = "http://127.0.0.1:{port}/oauth2callback"\ncookie_secret = "{"x" * 40}"\n'
        f'client_id = "loupe"\nclient_secret = "y"\n'
        f'server_metadata_url = "{provider}/.well-known/openid-configuration"\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))  # where Streamlit looks for them, too
    with served(UVICORN, "/health", tmp_path / "log", port) as address:
        page = browser.new_context().new_page()
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(f"{address}/teach")
        expect(page.get_by_role("button", name="Start the session")).to_have_count(0)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("Signed in as ada")).to_be_visible(timeout=1000 * PATIENCE)
        page.goto(f"{address}/teach")
        expect(page.get_by_role("button", name="Start the session")).to_be_visible(timeout=1000 * PATIENCE)
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_role("button", name="Sign in")).to_be_visible(timeout=1000 * PATIENCE)
        page.context.close()
