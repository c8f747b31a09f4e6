"""Tells who asks how long each run of a script took and on which page, and counts those that go on. Streamlit says
neither for runs of a fragment, nor when the last one of a server is over."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from time import perf_counter

from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

READ = {"scriptrunner.script_runner:ScriptRunner._run_script": "4d0b10584dc57799"}

Listener = Callable[[str, float], None]  # address of the page ("" for the first), seconds


class Runs:
    """Runs of scripts and fragments, in all sessions of this process; listeners hear nothing of sessions that are
    `ignored`."""

    def __init__(self) -> None:
        self.ignored = set[str]()
        self.listeners = list[Listener]()
        self.running = 0
        self._lock = Lock()

    def count(self, change: int) -> None:
        with self._lock:
            self.running += change


runs = Runs()


def apply() -> None:
    run = ScriptRunner._run_script

    @wraps(run)
    def run_observed(self: ScriptRunner, rerun_data: RerunData) -> None:
        began = perf_counter()
        runs.count(1)
        try:
            run(self, rerun_data)
        finally:
            runs.count(-1)
            for listen in runs.listeners if self._session_id not in runs.ignored else ():
                listen(find_address(get_script_run_ctx()), perf_counter() - began)

    ScriptRunner._run_script = run_observed  # type: ignore[method-assign]


def find_address(context: ScriptRunContext | None) -> str:
    """Address of the page that a script runs, "" for the first."""
    page = context.pages_manager.get_pages().get(context.page_script_hash) if context is not None else None
    return page.get("url_pathname", "") if page else ""
