"""Lets the way back stand where a message follows it before its run is over. Streamlit takes that message for all
there is to do, with the values that the controls had before."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps

from streamlit.runtime.scriptrunner import RerunData
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequest, ScriptRequests, ScriptRequestType

from pages.controls.state.history import went_back

READ = {
    "scriptrunner_utils.script_requests:ScriptRequests.request_rerun": "6163209cbaf80b0a",
    "scriptrunner_utils.script_requests:ScriptRequests._request_rerun_locked": "677ea7248cd590f3",
    "scriptrunner_utils.script_requests:ScriptRequests.on_scriptrunner_yield": "4f95742e7ca40cf0",
}


def apply() -> None:
    request, interrupt = ScriptRequests.request_rerun, ScriptRequests.on_scriptrunner_yield

    @wraps(request)
    def request_too(self: ScriptRequests, asked: RerunData) -> bool:
        waits = self._state == ScriptRequestType.RERUN and self._rerun_data.is_history_navigation
        return request(self, replace(asked, is_history_navigation=True) if waits else asked)

    @wraps(interrupt)
    def interrupt_too(self: ScriptRequests) -> ScriptRequest | None:
        asked = interrupt(self)
        if asked is None or asked.type != ScriptRequestType.RERUN or not went_back():
            return asked
        return ScriptRequest(asked.type, replace(asked.rerun_data, is_history_navigation=True))

    ScriptRequests.request_rerun = request_too  # type: ignore[assignment, method-assign]
    ScriptRequests.on_scriptrunner_yield = interrupt_too  # type: ignore[method-assign]
