"""LTI 1.3: which platforms may open Loupe, whether a launch is one of theirs, and how a score is sent to them.

Loupe is a tool: a platform (Moodle, Canvas) sends a browser with a signed token, and takes scores for one that Loupe
signs. 1EdTech, LTI Core 1.3, Security Framework 1.0, Assignment and Grade Services 2.0, and Deep Linking 2.0.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
import time
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx2
import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from httpx2 import codes
from jwt.algorithms import RSAAlgorithm

from server.lti.launches import target_of
from server.lti.linking import Linking

CLAIM = "https://purl.imsglobal.org/spec/lti/claim/"
ENDPOINT = "https://purl.imsglobal.org/spec/lti-ags/claim/endpoint"
RESOURCE_LINK, DEEP_LINKING, VERSION = "LtiResourceLinkRequest", "LtiDeepLinkingRequest", "1.3.0"
SCORE = "https://purl.imsglobal.org/spec/lti-ags/scope/score"
DEEP_CLAIM = "https://purl.imsglobal.org/spec/lti-dl/claim/"
LINK = "ltiResourceLink"
ORIGIN = re.compile(r"https://[\w.-]+(:\d+)?|http://(localhost|127\.0\.0\.1)(:\d+)?", re.ASCII)
POINTS = 100  # of a line of a gradebook that a link makes
ANY = "*"  # in place of the deployments of a platform that did not name one
VALID = 300  # seconds for which a token of Loupe's holds
ALGORITHM = "RS256"
TIMEOUT = 10.0  # seconds
LEEWAY = 60.0  # seconds by which clocks may differ
FRESH, PAUSE = 3600.0, 60.0  # seconds for which a platform's keys are kept, and until it is asked for others
NO_KEYS = (httpx2.HTTPError, httpx2.InvalidURL, jwt.PyJWTError, ValueError, TypeError, AttributeError)


@dataclass(frozen=True)
class Platform:
    """`audience` is whom a request for a token addresses, where that is not `token_url`."""

    issuer: str
    client_id: str
    deployment_ids: tuple[str, ...]
    auth_url: str
    token_url: str
    jwks_url: str
    audience: str = ""


@dataclass(frozen=True)
class Settings:
    """`address` is Loupe's own, as browsers reach it; `names` says whether those of learners are kept, and
    `may_register` which sites may register Loupe by themselves."""

    address: str
    platforms: tuple[Platform, ...]
    names: bool
    key: RSAPrivateKey
    may_register: tuple[str, ...] = ()

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
        sites = tuple(map(str, content.get("may_register", [])))
        if wrong := [one for one in sites if not ORIGIN.fullmatch(one)]:
            raise ValueError(f"may_register lists sites, https://moodle.school.example, not {wrong[0][:80]!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"expected settings of LTI platforms in {path}, got {type(error).__name__}: {error}; see docs/lti.md."
        ) from error
    if urlsplit(address).scheme not in ("http", "https"):
        raise ValueError(f"expected Loupe's address, https://…, in {path}, got {address[:80]!r}; see docs/lti.md.")
    key = read_key(Path(path).with_suffix(".pem"))
    return Settings(address, platforms, content.get("names", False) is True, key, sites)


def read_platform(content: Mapping[str, Any]) -> Platform:
    given = {one.name: content[one.name] for one in fields(Platform) if one.default is MISSING or one.name in content}
    if not isinstance(given["deployment_ids"], list):
        raise ValueError("deployment_ids is a list of texts")
    texts: dict[str, Any] = {name: str(value) for name, value in given.items()}
    return Platform(**texts | {"deployment_ids": tuple(map(str, given["deployment_ids"]))})


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


_keys: dict[str, tuple[float, jwt.PyJWKSet | None]] = {}  # of platforms, by addresses, and when they were asked for


def find_key(platform: Platform, id: str) -> jwt.PyJWK:
    """The key of a platform, which is asked again for one that is not known, but not at once: anybody can name one.
    Raises ValueError."""
    asked, keys = _keys.get(platform.jwks_url, (-math.inf, None))
    age = time.monotonic() - asked
    key = pick_key(keys, id)
    if key is not None and age <= FRESH:
        return key
    if age > PAUSE:
        _keys[platform.jwks_url] = time.monotonic(), keys
        try:
            answer = httpx2.get(platform.jwks_url, timeout=TIMEOUT).raise_for_status()
            keys = jwt.PyJWKSet.from_dict(answer.json())
        except NO_KEYS as error:
            raise ValueError(
                f"expected the platform's keys at {platform.jwks_url}, got {type(error).__name__}; try again later."
            ) from error
        _keys[platform.jwks_url] = time.monotonic(), keys
        key = pick_key(keys, id)
    if key is None:
        raise ValueError(
            f"expected a token signed by a key of the platform, got key {id[:80]!r}; open Loupe anew in a minute."
        )
    return key


def pick_key(keys: jwt.PyJWKSet | None, id: str) -> jwt.PyJWK | None:
    return next((one for one in (keys.keys if keys else ()) if one.key_id == id), None)


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
    if deployment not in platform.deployment_ids and ANY not in platform.deployment_ids:
        raise ValueError(f"expected a deployment that Loupe knows, got {deployment[:80]!r}; add it to the settings.")
    kind, version = content.get(f"{CLAIM}message_type"), content.get(f"{CLAIM}version")
    if kind not in (RESOURCE_LINK, DEEP_LINKING) or version != VERSION:
        said = str((kind, version))[:80]
        raise ValueError(f"expected a link to a page, LTI {VERSION}, got {said}; place a plain link.")
    if not secrets.compare_digest(str(content["nonce"]).encode(), nonce.encode()):
        raise ValueError("expected an answer to this browser's request, got another; open Loupe from the course again.")
    return platform, content


def grade_address(content: Mapping[str, Any]) -> str:
    """Address of the line of the gradebook that a launch may write to; "" where there is none: of a teacher, too."""
    endpoint, roles = content.get(ENDPOINT), content.get(f"{CLAIM}roles")
    if not isinstance(endpoint, dict) or SCORE not in list_said(endpoint, "scope") or not content.get("sub"):
        return ""
    if isinstance(roles, list) and any(str(role).endswith("membership#Instructor") for role in roles):
        return ""
    return str(endpoint.get("lineitem") or "")


def read_linking(platform: Platform, content: Mapping[str, Any]) -> Linking:
    """What a launch asks a teacher to choose. Raises ValueError where no link can be the answer."""
    asked, shown = content.get(f"{DEEP_CLAIM}deep_linking_settings"), content.get(f"{CLAIM}launch_presentation")
    asked, shown = (one if isinstance(one, dict) else {} for one in (asked, shown))
    if LINK not in (types := list_said(asked, "accept_types")):
        raise ValueError(f"expected a place for links ({LINK}), got one for {str(types)[:80]}; choose another place.")
    locale = re.match("[a-z]{2}(?![a-z])", str(shown.get("locale") or content.get("locale") or ""))
    found = Linking(
        platform.issuer,
        platform.client_id,
        str(content[f"{CLAIM}deployment_id"]),
        str(asked.get("deep_link_return_url") or ""),
        str(asked["data"]) if "data" in asked else None,
        asked.get("accept_lineitem") is not False,
        "window" in list_said(asked, "accept_presentation_document_targets"),
        locale[0] if locale else "",
    )
    if not origin_of(found.address):
        said = found.address[:80]
        raise ValueError(f"expected an address for the answer, https://…, got {said!r}; correct it in the platform.")
    return found


def origin_of(address: str) -> str:
    """ "" for what is no address that Loupe goes to: https://…, or of the same machine."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    origin = f"{parts.scheme}://{parts.netloc}"
    return origin if ORIGIN.fullmatch(origin) else ""


def list_said(said: Mapping[str, Any], name: str) -> list[Any]:
    found = said.get(name)
    return found if isinstance(found, list) else []


def write_answer(settings: Settings, linking: Linking, title: str, page: str) -> str:
    """The signed answer to a platform that asked to choose."""
    item: dict[str, Any] = {"type": LINK, "title": title, "url": f"{settings.address}/lti/launch"}
    item["custom"] = {"page": page}
    if linking.window:
        item["window"] = {"targetName": "_blank"}
    if linking.graded and (target := target_of(f"/{page}")):
        item["lineItem"] = {"label": title, "scoreMaximum": POINTS, "resourceId": target}
    now = int(time.time())
    claims = {
        "iss": linking.client, "aud": linking.issuer, "iat": now, "exp": now + VALID, "nonce": secrets.token_hex(16),
        f"{CLAIM}message_type": "LtiDeepLinkingResponse", f"{CLAIM}version": VERSION,
        f"{CLAIM}deployment_id": linking.deployment, f"{DEEP_CLAIM}content_items": [item],
    }  # fmt: skip
    return sign(settings, claims if linking.data is None else claims | {f"{DEEP_CLAIM}data": linking.data})


def sign(settings: Settings, claims: dict[str, Any]) -> str:
    return jwt.encode(claims, settings.key, ALGORITHM, {"kid": settings.public_key["kid"]})


def post_score(settings: Settings, platform: Platform, lineitem: str, user: str, score: float, stamp: int) -> None:
    """Sends a score from 0 to 1 that changed at `stamp`, in milliseconds. A platform that has a later one, such as a
    teacher's, keeps it: that is no error. Raises httpx2.HTTPError, or ValueError for an answer that holds no token."""
    now, about, to = int(time.time()), platform.client_id, platform.audience or platform.token_url
    claims = {"iss": about, "sub": about, "aud": to, "iat": now, "exp": now + VALID}
    assertion = sign(settings, claims | {"jti": secrets.token_hex(16)})
    parts = urlsplit(lineitem)
    scores = urlunsplit(parts._replace(path=f"{parts.path}/scores"))  # Moodle's has a query
    changed = datetime.fromtimestamp(stamp / 1000, UTC).isoformat(timespec="milliseconds")
    body = {
        "userId": user,
        "scoreGiven": score,
        "scoreMaximum": 1,
        "activityProgress": "Completed",
        "gradingProgress": "FullyGraded",
        "timestamp": changed,
    }
    with httpx2.Client(timeout=TIMEOUT) as http:
        answer = http.post(platform.token_url, data={
            "grant_type": "client_credentials", "scope": SCORE, "client_assertion": assertion,
            "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        }).raise_for_status().json()  # fmt: skip
        if not isinstance(answer, dict) or "access_token" not in answer:
            raise ValueError("expected an access token of the platform, got none.")
        kind = {"Content-Type": "application/vnd.ims.lis.v1.score+json"}
        bearer = {"Authorization": f"Bearer {answer['access_token']}"}
        taken = http.post(scores, json=body, headers=kind | bearer)
        if taken.status_code != codes.CONFLICT:
            taken.raise_for_status()
