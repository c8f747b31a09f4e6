"""Nobody is answered under a name that is not this server's."""

import socket
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from server.http import own_names
from server.http.own_names import OwnNames
from tests.coroutines import finish

OURS = (
    "127.0.0.1:8501", "localhost", "LOCALHOST:1", "site.localhost:80", "[::1]:8501", "[fd00::7]", "192.168.1.5:8501",
    socket.gethostname(), f"{socket.gethostname()}.local:8501", "loupe.school.example", "Loupe.School.Example:443",
)  # fmt: skip
OTHERS = (
    "evil.example", "evil.example:8501", "127.0.0.1.evil.example", "localhost.evil.example", "evil-localhost", "",
    ":80", "loupe.school.example.evil", "[::1", "a b", "127.0.0.1@evil.example",
    "localhost\\evil.example", "０.0.0.0x", "//x",
)  # fmt: skip


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_only_a_name_of_this_server_reaches_what_is_behind(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_names, "ADDRESS", "https://loupe.school.example/lab")
    reached = list[Scope]()

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        reached.append(scope)

    def ask(*said: str) -> list[Message]:
        sent = list[Message]()

        async def send(message: Message) -> None:
            sent.append(message)

        scope: Any = {"type": kind, "path": "/", "headers": [(b"host", one.encode("utf-8")) for one in said]}
        finish(OwnNames(behind)(scope, None, send))  # type: ignore[arg-type]
        return sent

    for count, host in enumerate(OURS, 1):
        assert not ask(host) and len(reached) == count
    assert not ask() and len(reached) == len(OURS) + 1  # no browser, each of which sends one
    for refused in ([one] for one in OTHERS):
        start, body = ask(*refused)
        assert start["status"] == 421 and start["type"].endswith("response.start")
        assert b"set LOUPE_ADDRESS" in body["body"]
    assert ask("localhost", "evil.example")[0]["status"] == 421
    assert len(reached) == len(OURS) + 1
