"""What a browser says first to a server that was started anew runs the whole script."""

from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.runtime.app_session import AppSession, AppSessionState


@pytest.mark.parametrize(("page", "begun"), [("", [None]), ("walkthrough", [])])
def test_a_fragment_that_a_new_session_does_not_know_runs_the_whole_script(page: str, begun: list[None]) -> None:
    started: list[str | None] = []
    session = SimpleNamespace(
        page_script_hash=page,
        _state=AppSessionState.APP_NOT_RUNNING,
        _scriptrunner=None,
        has_fragment=lambda name: False,
        _create_scriptrunner=lambda run: started.append(run.fragment_id),
    )
    AppSession.request_rerun(session, ClientState(fragment_id="courier"))  # type: ignore[arg-type]
    assert started == begun
