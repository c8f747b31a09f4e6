"""What a click said is done whole.

Streamlit interrupts a run of the script when the next message comes, at whatever of its functions is called then:
inside a callback too, and before the callbacks. What the first message said is lost then, half of it or all. Here
nothing is interrupted until the callbacks of a message are done; the script behind them is, as ever.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
from streamlit.runtime.state.safe_session_state import SafeSessionState

_here = threading.local()  # `calling`: this thread takes a message in


def keep_callbacks_whole() -> None:
    """Call it before a script runs; a second call does nothing."""
    if getattr(ScriptRunner, "keeps_callbacks_whole", False):
        return
    take_in, interrupt = SafeSessionState.on_script_will_rerun, ScriptRunner._maybe_handle_execution_control_request

    @wraps(take_in)
    def take_in_whole(self: SafeSessionState, *arguments: Any, **options: Any) -> None:
        _here.calling = True
        try:
            take_in(self, *arguments, **options)
        finally:
            _here.calling = False

    @wraps(interrupt)
    def interrupt_between(self: ScriptRunner) -> None:
        if not getattr(_here, "calling", False):
            interrupt(self)

    SafeSessionState.on_script_will_rerun = take_in_whole  # type: ignore[method-assign]
    ScriptRunner._maybe_handle_execution_control_request = interrupt_between  # type: ignore[method-assign]
    ScriptRunner.keeps_callbacks_whole = True  # type: ignore[attr-defined]
