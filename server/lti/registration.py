"""How a platform gets to know Loupe by one address that its administrator pastes, and what Loupe keeps of it.

1EdTech, LTI Dynamic Registration 1.0. Loupe asks nobody but the sites that the settings name, so that whoever calls
can send it to no other place; that they are an administrator, the platform knows by its token.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from typing import Any
from urllib.parse import urlsplit

import httpx2
from sqlalchemy import insert, select

from engine.json_text import parse_json
from server.classes.store import PLATFORMS, Classes
from server.lti.platforms import (
    ANY,
    DEEP_LINKING,
    RESOURCE_LINK,
    SCORE,
    TIMEOUT,
    Platform,
    Settings,
    origin_of,
    read_platform,
)

TOOL = "https://purl.imsglobal.org/spec/lti-tool-configuration"
MOST = 2**18  # bytes of an answer
PLACES = {  # fields of a Platform by what a configuration calls them
    "authorization_endpoint": "auth_url",
    "token_endpoint": "token_url",
    "jwks_uri": "jwks_url",
}


def add_registered(settings: Settings, classes: Classes) -> Settings:
    """With the platforms that registered, the newest first, as long as the settings name their sites."""
    listed = select(PLATFORMS.c.content).order_by(PLATFORMS.c.at.desc())
    with classes.engine.connect() as connection:
        found = [read_platform(parse_json(one)) for one in connection.execute(listed).scalars()]
    known = [one for one in found if origin_of(one.issuer) in settings.may_register]
    return replace(settings, platforms=(*settings.platforms, *known))


def register(settings: Settings, classes: Classes, configuration: str, token: str) -> Platform:
    """Reads a platform's configuration, tells it Loupe's, and keeps what it answers. Raises ValueError."""
    check_site(settings, configuration)
    said = ask("GET", configuration)
    issuer, site = str(said.get("issuer")), origin_of(configuration)
    if origin_of(issuer) != site:
        raise ValueError(f"expected a platform at {site}, got {issuer[:200]!r}; look at its settings.")
    for name in ("registration_endpoint", *PLACES):
        check_site(settings, str(said.get(name)))
    answer = ask(
        "POST",
        str(said["registration_endpoint"]),
        json=describe_tool(settings),
        headers={"Authorization": f"Bearer {token}"} if token else {},
    )
    if not (client := answer.get("client_id")):
        raise ValueError("expected a client id of the platform, got none; begin again there.")
    tool = answer.get(TOOL)
    deployment = tool.get("deployment_id") if isinstance(tool, dict) else None
    platform = Platform(
        issuer,
        str(client),
        (str(deployment or ANY),),
        **{field: str(said[name]) for name, field in PLACES.items()},
        audience=str(said.get("authorization_server") or ""),
    )
    row = {"issuer": issuer, "client": platform.client_id, "content": json.dumps(asdict(platform)), "at": time.time()}
    with classes.write() as connection:
        connection.execute(PLATFORMS.delete().where(*(PLATFORMS.c[name] == row[name] for name in ("issuer", "client"))))
        connection.execute(insert(PLATFORMS).values(row))
    return platform


def check_site(settings: Settings, address: str) -> None:
    if origin_of(address) not in settings.may_register:
        raise ValueError(
            f"expected an address of a site that may register Loupe, got {address[:200]!r}; who runs Loupe adds the "
            "site to may_register."
        )


def describe_tool(settings: Settings) -> dict[str, Any]:
    at = settings.address
    messages = [{"type": kind, "target_link_uri": f"{at}/lti/launch"} for kind in (RESOURCE_LINK, DEEP_LINKING)]
    return {
        "application_type": "web", "client_name": "Loupe", "response_types": ["id_token"],
        "grant_types": ["implicit", "client_credentials"], "initiate_login_uri": f"{at}/lti/login",
        "redirect_uris": [f"{at}/lti/launch"], "jwks_uri": f"{at}/lti/keys",
        "token_endpoint_auth_method": "private_key_jwt", "scope": SCORE,
        TOOL: {
            "domain": urlsplit(at).netloc, "target_link_uri": f"{at}/lti/launch",
            "claims": ["iss", "sub", *(["name"] if settings.names else [])],
            "messages": messages,
        },
    }  # fmt: skip


def ask(method: str, address: str, headers: dict[str, str] | None = None, **given: Any) -> dict[str, Any]:
    """The JSON object of an answer, which is no redirection. Raises ValueError."""
    body, ends = b"", time.monotonic() + TIMEOUT
    headers = {"Accept": "application/json", "Accept-Encoding": "identity"} | (headers or {})
    try:
        with httpx2.stream(method, address, timeout=TIMEOUT, headers=headers, **given) as answer:
            answer.raise_for_status()
            for part in answer.iter_raw():
                body += part
                if len(body) > MOST or time.monotonic() > ends:
                    raise ValueError(f"more than {MOST:,} bytes or {TIMEOUT:.0f} seconds")
        content = parse_json(body)
        if not isinstance(content, dict):
            raise ValueError("no object")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise ValueError(
            f"expected an answer of the platform at {address[:200]}, got {said}; begin again there."
        ) from error
    return content
