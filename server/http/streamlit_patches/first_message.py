"""Lets the first message of a session run the whole script, so that a browser whose server was started anew goes on
where it was. What it says first may be about a fragment: the new session, which has run nothing, knows none, and
drops the message and every other one about that fragment."""

from __future__ import annotations

from functools import wraps

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession

READ = {
    "app_session:AppSession.request_rerun": "fc6c34000751765e",
}


def apply() -> None:
    request = AppSession.request_rerun

    @wraps(request)
    def request_whole(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None and not self.page_script_hash:  # nothing has run
            client_state.fragment_id = ""
        request(self, client_state)

    AppSession.request_rerun = request_whole  # type: ignore[method-assign]
