"""Lets a message that comes between the end of a run and the news of it wait for the news. A run tells its session
by the event loop what it draws. Where that loop gets no time until the run has ended, and has another message to
see to first, Streamlit starts a new runner for that and ignores all that is still to come of the one before."""

from __future__ import annotations

from functools import wraps
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.scriptrunner import ScriptRunner, ScriptRunnerEvent
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequestType

READ = {
    "app_session:AppSession.request_rerun": "fc6c34000751765e",
    "app_session:AppSession._handle_scriptrunner_event_on_event_loop": "1a222d219467e47c",
    "scriptrunner.script_runner:ScriptRunner._run_script_thread": "cdfe69c6a736a4a6",
}


def apply() -> None:
    request, hear = AppSession.request_rerun, AppSession._handle_scriptrunner_event_on_event_loop

    @wraps(request)
    def request_in_turn(self: AppSession, client_state: ClientState | None) -> None:
        if _has_ended(self._scriptrunner):
            self.__dict__.setdefault("waiting", []).append(client_state)
        else:
            request(self, client_state)

    @wraps(hear)
    def hear_and_go_on(self: AppSession, sender: ScriptRunner | None, event: ScriptRunnerEvent, *more: Any) -> None:
        hear(self, sender, event, *more)
        if event == ScriptRunnerEvent.SHUTDOWN:
            for client_state in self.__dict__.pop("waiting", []):
                self.request_rerun(client_state)

    AppSession.request_rerun = request_in_turn  # type: ignore[method-assign]
    AppSession._handle_scriptrunner_event_on_event_loop = hear_and_go_on  # type: ignore[assignment, method-assign]


def _has_ended(runner: ScriptRunner | None) -> bool:
    """True if a runner takes no more requests and has left the script: its last event is under way."""
    return runner is not None and runner._requests._state == ScriptRequestType.STOP and not runner._execing
