"""LTI 1.3: which platforms may open Loupe, whether a launch is one of theirs, and how a score is sent to them.

Loupe is a tool: a platform (Moodle, Canvas) sends a browser with a signed token, and takes scores for one that Loupe
signs. 1EdTech, LTI Core 1.3, Security Framework 1.0, and Assignment and Grade Services 2.0.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from jwt.algorithms import RSAAlgorithm

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
ENDPOINT = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
SCORE = "https://purl.imsglobal.org/spec/lti-ags/scope/score"
ALGORITHM = "RS256"
TIMEOUT = 10.0  # seconds
LEEWAY = 60.0  # seconds by which clocks may differ
FRESH = 3600.0  # seconds for which a platform's keys are kept
NO_KEYS = (httpx2.HTTPError, httpx2.InvalidURL, jwt.PyJWTError, ValueError, TypeError, AttributeError)


@dataclass(frozen=True)
class Platform:
    issuer: str
    client_id: str
    deployment_ids: tuple[str, ...]
    auth_url: str
    token_url: str
    jwks_url: str


@dataclass(frozen=True)
class Settings:
    """`address` is Loupe's own, as browsers reach it; `names` says whether those of learners are kept."""

    address: str
    platforms: tuple[Platform, ...]
    names: bool
    key: RSAPrivateKey

    def find(self, issuer: str, client: str | list[str] = "") -> Platform:
        """The platform of an issuer, and of a client id (or one of several) where there is one. Raises ValueError."""
        ours = [one for one in self.platforms if one.issuer == issuer]
        if not ours:
            raise ValueError(f"expected a platform that Loupe knows, got {issuer[:200]!r}; add it to the settings.")
        for one in ours:
            if client in ("", one.client_id) or isinstance(client, list) and one.client_id in client:
                return one
        raise ValueError(f"expected a client id that Loupe knows, got {str(client)[:200]!r}; look at the settings.")

    @property
    def public_key(self) -> dict[str, Any]:
        """Loupe's key as platforms read it."""
        public: dict[str, Any] = RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        id = hashlib.sha256(public["n"].encode()).hexdigest()[:16]
        return {**public, "kid": id, "alg": ALGORITHM, "use": "sig"}


@cache
def read_settings(path: str) -> Settings:
    """Reads the settings file, and makes Loupe's key beside it where there is none. Raises ValueError."""
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        address = str(content["address"]).rstrip("/")
        platforms = tuple(read_platform(one) for one in content["platforms"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"expected settings of LTI platforms in {path}, got {type(error).__name__}: {error}; see docs/lti.md."
        ) from error
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"expected Loupe's address, https://…, in {path}, got {address[:80]!r}; see docs/lti.md.")
    return Settings(address, platforms, content.get("names", False) is True, read_key(Path(path).with_suffix(".pem")))


def read_platform(content: Mapping[str, Any]) -> Platform:
    given = {one.name: content[one.name] for one in fields(Platform)}
    if not isinstance(given["deployment_ids"], list):
        raise ValueError("deployment_ids is a list of texts")
    return Platform(**{name: str(value) for name, value in given.items()} | {
        "deployment_ids": tuple(map(str, given["deployment_ids"]))
    })  # type: ignore[arg-type]  # fmt: skip


def read_key(path: Path) -> RSAPrivateKey:
    if not path.exists():
        made = generate_private_key(65537, 2048)
        # Whole under another name first: another process may read it meanwhile.
        partial = path.with_name(f"{path.name}.{os.getpid()}")
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        try:
            os.link(partial, path)  # unless another process was first
        except FileExistsError:
            pass
        finally:
            partial.unlink()
    key = load_pem_private_key(path.read_bytes(), None)
    if not isinstance(key, RSAPrivateKey):
        raise ValueError(f"expected an RSA key in {path}, got another one; delete it, and Loupe makes one.")
    return key


_keys: dict[str, tuple[float, jwt.PyJWKSet]] = {}  # of platforms, by their addresses, and when they were read


def find_key(platform: Platform, id: str) -> jwt.PyJWK:
    """The key of a platform, which is asked again for one that is not known. Raises ValueError."""
    read, keys = _keys.get(platform.jwks_url, (0.0, None))
    for again in (False, True):
        if again or keys is None or time.monotonic() - read > FRESH:
            try:
                answer = httpx2.get(platform.jwks_url, timeout=TIMEOUT).raise_for_status()
                keys = jwt.PyJWKSet.from_dict(answer.json())
            except NO_KEYS as error:
                raise ValueError(
                    f"expected the platform's keys at {platform.jwks_url}, got {type(error).__name__}; try again later."
                ) from error
            _keys[platform.jwks_url] = read, keys = time.monotonic(), keys
        for key in keys.keys:
            if key.key_id == id:
                return key
    raise ValueError(f"expected a token signed by a key of the platform, got key {id[:80]!r}; open Loupe anew.")


def read_launch(settings: Settings, token: str, nonce: str) -> tuple[Platform, dict[str, Any]]:
    """What a launch says, once it is known to be a platform's, for Loupe, and for this browser. Raises ValueError."""
    try:
        unread = jwt.decode_complete(token, options={"verify_signature": False})
        said, id = unread["payload"], str(unread["header"].get("kid", ""))
        platform = settings.find(str(said.get("iss")), said.get("aud") or "none")
        content = jwt.decode(
            token, find_key(platform, id), [ALGORITHM], audience=platform.client_id, issuer=platform.issuer,
            leeway=LEEWAY, options={"require": ["exp", "iat", "nonce"]},
        )  # fmt: skip
    except jwt.ExpiredSignatureError as error:
        raise ValueError("expected a fresh launch, got one that is over; open Loupe from the course again.") from error
    except jwt.PyJWTError as error:
        raise ValueError(
            f"expected a token that the platform signed, got one that does not hold ({error}); open Loupe from the "
            "course again."
        ) from error
    deployment = str(content.get(f"{CLAIM}deployment_id"))
    if content.get("azp", platform.client_id) != platform.client_id:
        raise ValueError(f"expected a token for Loupe, got one for {str(content['azp'])[:80]!r}; look at the settings.")
    if deployment not in platform.deployment_ids:
        raise ValueError(f"expected a deployment that Loupe knows, got {deployment[:80]!r}; add it to the settings.")
    kind, version = content.get(f"{CLAIM}message_type"), content.get(f"{CLAIM}version")
    if (kind, version) != ("LtiResourceLinkRequest", "1.3.0"):
        raise ValueError(f"expected a link to a page, LTI 1.3.0, got {str((kind, version))[:80]}; place a plain link.")
    if not secrets.compare_digest(str(content["nonce"]).encode(), nonce.encode()):
        raise ValueError("expected an answer to this browser's request, got another; open Loupe from the course again.")
    return platform, content


def grade_address(content: Mapping[str, Any]) -> str:
    """Address of the line of the gradebook that a launch may write to; "" where there is none: of a teacher, too."""
    endpoint, roles = content.get(ENDPOINT), content.get(f"{CLAIM}roles")
    if not isinstance(endpoint, dict) or SCORE not in (endpoint.get("scope") or ()) or not content.get("sub"):
        return ""
    if isinstance(roles, list) and any(str(role).endswith("membership#Instructor") for role in roles):
        return ""
    return str(endpoint.get("lineitem") or "")


def post_score(settings: Settings, platform: Platform, lineitem: str, user: str, score: float) -> None:
    """Sends a score from 0 to 1. Raises httpx2.HTTPError, or ValueError for an answer that holds no token."""
    now, about = int(time.time()), platform.client_id
    claims = {"iss": about, "sub": about, "aud": platform.token_url, "iat": now, "exp": now + 300}
    assertion = jwt.encode(
        claims | {"jti": secrets.token_hex(16)}, settings.key, ALGORITHM, {"kid": settings.public_key["kid"]}
    )
    parts = urlsplit(lineitem)
    scores = urlunsplit(parts._replace(path=f"{parts.path}/scores"))  # Moodle's has a query
    body = {
        "userId": user, "scoreGiven": score, "scoreMaximum": 1, "activityProgress": "Completed",
        "gradingProgress": "FullyGraded", "timestamp": datetime.now(UTC).isoformat(timespec="milliseconds"),
    }  # fmt: skip
    with httpx2.Client(timeout=TIMEOUT) as http:
        answer = http.post(platform.token_url, data={
            "grant_type": "client_credentials", "scope": SCORE, "client_assertion": assertion,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        }).raise_for_status().json()  # fmt: skip
        if not isinstance(answer, dict) or "access_token" not in answer:
            raise ValueError("expected an access token of the platform, got none.")
        kind = {"Content-Type": "application/vnd.ims.lis.v1.score+json"}
        bearer = {"Authorization": f"Bearer {answer['access_token']}"}
        http.post(scores, json=body, headers=kind | bearer).raise_for_status()
