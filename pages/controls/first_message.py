"""A browser whose server was started anew goes on where it was.

Streamlit's browser reconnects, and asks for a run of the whole script only where one was interrupted. What it says
next may be about a fragment: the new session, which has run nothing, knows none, and drops the message and every
other one about that fragment. Here the first message of a session runs the whole script.
"""

from __future__ import annotations

from functools import wraps

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession


def run_whole_at_first() -> None:
    """Call it before a browser connects; a second call does nothing."""
    if getattr(AppSession, "runs_whole_at_first", False):
        return
    request = AppSession.request_rerun

    @wraps(request)
    def request_whole(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None and not self.page_script_hash:  # nothing has run
            client_state.fragment_id = ""
        request(self, client_state)

    AppSession.request_rerun = request_whole  # type: ignore[method-assign]
    AppSession.runs_whole_at_first = True  # type: ignore[attr-defined]
