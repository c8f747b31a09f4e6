"""Gives each run of a script, and of a fragment, limits of time and memory, and ends what it computes once its visitor
has left. Streamlit asks whether a script shall stop only where it draws something."""

from __future__ import annotations

import gc
from functools import wraps
from time import monotonic

from streamlit.runtime import get_instance
from streamlit.runtime.scriptrunner import RerunData, ScriptRunner, StopException
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

from engine.checkpoints.memory import available_memory, gigabytes
from engine.runtime.lru_cache import release_all
from engine.work_limit import WorkLimitError, limit_work
from server.settings import FREE_MEMORY, WORK_SECONDS

READ = {
    "scriptrunner.script_runner:ScriptRunner._run_script": "4d0b10584dc57799",
    "scriptrunner.script_runner:ScriptRunner._maybe_handle_execution_control_request": "e57497cfd971b2f4",
}
PACE = 0.25  # seconds between two looks at the memory


class Watch:
    """Ends the work of `runner` once its visitor has left, or where the machine's memory is nearly used up."""

    def __init__(self, runner: ScriptRunner) -> None:
        self.runner, self.looked = runner, 0.0

    def has_left(self) -> bool:
        """False where a message of a visitor who is there stops a run, which then ends where Streamlit ends it."""
        return self.runner._execing and not get_instance().is_active_session(self.runner._session_id)

    def check(self) -> None:
        if self.runner._requests._state == ScriptRequestType.STOP and self.has_left():
            raise StopException
        if monotonic() - self.looked > PACE:
            self.looked = monotonic()
            check_memory()


def check_memory() -> None:
    """Raises WorkLimitError where less is free than is to stay so, even without what can be made anew."""
    if not is_short():
        return
    release_all()
    gc.collect()
    if is_short():
        raise WorkLimitError(
            f"This server must keep {gigabytes(FREE_MEMORY)} of its memory free, and less is left; take a shorter text "
            "or a smaller model, or come back when others are done."
        )


def is_short() -> bool:
    free = available_memory()
    return free is not None and free < FREE_MEMORY


def apply() -> None:
    run = ScriptRunner._run_script

    @wraps(run)
    def run_limited(self: ScriptRunner, rerun_data: RerunData) -> None:
        with limit_work(WORK_SECONDS, Watch(self).check):
            run(self, rerun_data)

    ScriptRunner._run_script = run_limited  # type: ignore[method-assign]
