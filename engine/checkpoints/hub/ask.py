"""Asking the hub, and what its refusals mean in one sentence.

The requests go through huggingface_hub's session, whose settings (proxies, certificates) are the person's own. They
carry our own headers: those that its API builds say what is installed here, and to build them it asks its default
host even where HF_ENDPOINT names another. The environment is read at every call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urlsplit

import httpx2
from huggingface_hub import ModelInfo, constants, get_session, hf_raise_for_status, is_offline_mode
from huggingface_hub.errors import (
    DisabledRepoError,
    GatedRepoError,
    HfHubHTTPError,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from engine.checkpoints.hub.name import HubName

TRUE = {"1", "ON", "YES", "TRUE"}
UNLIKE_A_HUB = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)  # of an answer that is not what a hub gives


def endpoint() -> str:
    given = (os.environ.get("HF_ENDPOINT") or constants.ENDPOINT).rstrip("/")
    try:
        parts = urlsplit(given)
        plain = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        plain = False
    if not plain:
        raise ValueError(f"HF_ENDPOINT must be an address such as https://hub.example, got {given!r}; correct it.")
    return given


def offline() -> bool:
    return is_offline_mode() or os.environ.get("HF_HUB_OFFLINE", "").upper() in TRUE


def token() -> str:
    """Of HF_TOKEN alone, never a login stored on this machine: whoever may open Loupe may use it."""
    given = os.environ.get("HF_TOKEN", "").strip()
    if not (given.isascii() and given.isprintable()):
        raise PermissionError("HF_TOKEN must be a token of the hub, and holds characters that none has; set it again.")
    return given


def listing(name: HubName) -> ModelInfo:
    """What the hub says of a repository, with its files' sizes and digests.

    Raises FileNotFoundError where it has no such repository or revision, PermissionError where it does not show it,
    ConnectionError where it cannot be reached, ValueError where it answers like no hub.
    """
    url = f"{endpoint()}/api/models/{name.repo}/revision/{quote(name.revision, safe='')}"
    with answer(name, url, {"blobs": "true"}) as response:
        response.read()
        try:
            return ModelInfo(**response.json())
        except UNLIKE_A_HUB as error:
            raise ValueError(
                f"{host()} must answer as a hub does, and its answer about {name.repo} does not read "
                f"({type(error).__name__}); correct HF_ENDPOINT."
            ) from None


def file_url(name: HubName, commit: str, file: str) -> str:
    """Not by `hf_hub_url`, which leaves out an endpoint that was named after it was imported."""
    return f"{endpoint()}/{name.repo}/resolve/{commit}/{quote(file)}"


@contextmanager
def answer(name: HubName, url: str, params: dict[str, str] | None = None, start: int = 0) -> Iterator[httpx2.Response]:
    """The answer to a GET, its body still to be read; from byte `start` where the server can do that.

    The session does not carry the token on to another host that it is sent to. Raises as `listing` does.
    """
    headers = {"User-Agent": "loupe", "Accept-Encoding": "identity"}
    headers |= {"Authorization": f"Bearer {token()}"} if token() else {}
    headers |= {"Range": f"bytes={start}-"} if start else {}
    timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
    try:
        with get_session().stream("GET", url, params=params, headers=headers, timeout=timeout) as response:
            if response.status_code != 416:  # a file that ends before `start`
                hf_raise_for_status(response)
            yield response
    except HfHubHTTPError as error:
        raise refusal(error, name) from None
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise ConnectionError(
            f"{host()} cannot be reached ({str(error) or type(error).__name__}); check the network and HF_ENDPOINT."
        ) from None


def refusal(error: HfHubHTTPError, name: HubName) -> Exception:
    """A hub answers 401 to one without a token for what does not exist too, so as not to tell what does."""
    status = error.response.status_code
    if isinstance(error, RevisionNotFoundError):
        return FileNotFoundError(
            f"{name.repo} has no revision {name.revision!r}; name one of its branches, tags or commits."
        )
    if isinstance(error, RemoteEntryNotFoundError):
        return FileNotFoundError(f"{host()} lists a file of {name.repo} that it does not have; ask for it again later.")
    if isinstance(error, GatedRepoError):
        less = ", which the account of the present one has not" if token() else ""
        return PermissionError(
            f"{name.repo} is gated: ask for access at {host()}/{name.repo}{less}, and set HF_TOKEN to a token "
            "of the account that has it."
        )
    if isinstance(error, DisabledRepoError):
        return PermissionError(f"{host()} has disabled {name.repo}; choose another checkpoint.")
    if status == 401 and token():
        return PermissionError(f"{host()} does not accept the token in HF_TOKEN for {name.repo}; set a valid one.")
    if isinstance(error, RepositoryNotFoundError) or status in (401, 404):
        seen = "a token in HF_TOKEN that may read it" if token() else "HF_TOKEN to a token that may read it"
        return FileNotFoundError(f"{host()} has no {name.repo}, or it is private: check the name, or set {seen}.")
    if status == 403:
        return PermissionError(f"{host()} does not let us read {name.repo}; set HF_TOKEN to a token that may read it.")
    if status in (408, 429) or status >= 500:
        return ConnectionError(f"{host()} answers {status} just now; ask again later.")
    return ValueError(f"{host()} answers {status} when asked for {name.repo}; correct HF_ENDPOINT.")


def host() -> str:
    """Without the name and password that an address may hold."""
    return urlsplit(endpoint()).netloc.rpartition("@")[2]
