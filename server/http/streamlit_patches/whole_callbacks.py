"""Interrupts nothing until the callbacks of a message are done; the script behind them is interrupted, as ever.
Streamlit does so at whatever of its functions is called when the next message comes: inside a callback too, and
before the callbacks, and what the first message said is lost, half of it or all."""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequest, ScriptRequests
from streamlit.runtime.state.safe_session_state import SafeSessionState

READ = {
    "state.safe_session_state:SafeSessionState.on_script_will_rerun": "e93cc353ae0a4fd0",
    "scriptrunner.script_runner:ScriptRunner._maybe_handle_execution_control_request": "e57497cfd971b2f4",
    "scriptrunner_utils.script_requests:ScriptRequests.on_scriptrunner_yield": "4f95742e7ca40cf0",
}

_here = threading.local()  # `calling`: this thread takes a message in


def apply() -> None:
    take_in, interrupt = SafeSessionState.on_script_will_rerun, ScriptRequests.on_scriptrunner_yield

    @wraps(take_in)
    def take_in_whole(self: SafeSessionState, *arguments: Any, **options: Any) -> None:
        _here.calling = True
        try:
            take_in(self, *arguments, **options)
        finally:
            _here.calling = False

    @wraps(interrupt)
    def interrupt_between(self: ScriptRequests) -> ScriptRequest | None:
        return None if getattr(_here, "calling", False) else interrupt(self)

    SafeSessionState.on_script_will_rerun = take_in_whole  # type: ignore[method-assign]
    ScriptRequests.on_scriptrunner_yield = interrupt_between  # type: ignore[method-assign]
