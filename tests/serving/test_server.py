"""A server of two processes from its start to its end, as an operator sees it."""

import asyncio
import re
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.request import urlopen

import pytest

from bench.load import Action, session
from serving.workers import Place
from tests.browser.harness import served

pytestmark = pytest.mark.long
WORKERS = 2
COMMAND = ["asgi", "--port", "{port}", "--workers", str(WORKERS)]


def read_metrics(address: str) -> dict[str, float]:
    with urlopen(f"{address}/metrics") as answer:
        return {name: float(value) for name, value in re.findall(r"^(loupe_\S+) (\S+)$", answer.read().decode(), re.M)}


def test_metrics_are_of_all_processes(tmp_path: Path) -> None:
    async def visit(address: str) -> dict[str, float]:
        async with AsyncExitStack() as stack:
            for number in range(WORKERS):
                visitor = await stack.enter_async_context(session(address, Place(number, WORKERS).new_name()))
                await visitor.act(Action("attention"))
            return await asyncio.to_thread(read_metrics, address)

    with served(COMMAND, "/health", tmp_path / "log") as address:
        before, during = read_metrics(address), asyncio.run(visit(address))
    assert before["loupe_runs_queued"] == 0 and 'loupe_script_run_seconds_count{page="home"}' not in before
    assert during["loupe_sessions"] == WORKERS and during["loupe_trace_bytes"] > 0
    for page in ("home", "attention"):
        assert during[f'loupe_script_run_seconds_count{{page="{page}"}}'] == WORKERS
