"""A server of two processes from its start to its end, as an operator sees it."""

import asyncio
import json
import re
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from bench.load import Action, session
from server.http.workers import Place
from tests.browser.harness import served
from tests.coroutines import finish

pytestmark = pytest.mark.long
WORKERS = 2
COMMAND = ["asgi", "--port", "{port}", "--workers", str(WORKERS)]


def read_metrics(address: str) -> dict[str, float]:
    with urlopen(f"{address}/metrics") as answer:
        return {name: float(value) for name, value in re.findall(r"^(loupe_\S+) (\S+)$", answer.read().decode(), re.M)}


async def is_let_in(address: str, origin: str, refused: int = 403, **more: Any) -> bool:
    try:
        async with connect(f"ws{address.removeprefix('http')}/_stcore/stream", origin=Origin(origin), **more):
            return True
    except InvalidStatus as error:
        assert error.response.status_code == refused
        return False


def test_what_an_operator_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def visit(address: str) -> dict[str, float]:
        assert await is_let_in(address, address) and not await is_let_in(address, "https://foreign.example")
        port = int(address.rpartition(":")[2])
        rebound = f"http://foreign.example:{port}"
        assert not await is_let_in(rebound, rebound, 421, host="127.0.0.1", port=port)
        async with AsyncExitStack() as stack:
            for number in range(WORKERS):
                visitor = await stack.enter_async_context(session(address, Place(number, WORKERS).new_name()))
                await visitor.act(Action("attention"))
                await visitor.act(Action("attention", "text", "A secret text"))
            return await asyncio.to_thread(read_metrics, address)

    monkeypatch.setenv("LOUPE_LOG", "json")
    with served(COMMAND, "/health", tmp_path / "log") as address:
        before, during = read_metrics(address), finish(visit(address))
    assert before["loupe_runs_queued"] == 0 and 'loupe_script_run_seconds_count{page="home"}' not in before
    assert during["loupe_sessions"] == WORKERS and during["loupe_trace_bytes"] > 0
    counts = [during[f'loupe_script_run_seconds_count{{page="{page}"}}'] for page in ("home", "attention")]
    assert counts == [WORKERS, 2 * WORKERS]

    lines = (tmp_path / "log").read_text().splitlines()
    events = [json.loads(line) for line in lines if not line.startswith(f"{WORKERS} processes serve ")]
    assert [line["event"] for line in events].count("ready") == WORKERS
    assert sum(line["event"] == "run" and line["page"] == "attention" for line in events) == 2 * WORKERS
    assert "secret" not in "".join(lines) and "foreign" not in "".join(lines)
