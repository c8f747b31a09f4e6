"""A message is judged whatever a browser says a control holds."""

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from server.http.streamlit_patches.concurrent_change import _keep_value


@pytest.mark.parametrize("said", [WidgetState(id="one"), WidgetState(id="one", string_value="a")])
def test_a_control_that_holds_nothing_is_judged_too(said: WidgetState) -> None:
    """An empty file_uploader's message has no value, and Streamlit forgets of which kind its control is."""
    state, values = SessionState(), deque[Any]()
    known: Any = WidgetMetadata("one", lambda value: value, lambda value: value, "string_value")
    state._set_widget_metadata(known)
    state._new_widget_state.set_widget_from_proto(said)
    for _ in range(2):
        _keep_value(state, "one", values)
    assert list(values) == [said.string_value if said.HasField("string_value") else None]


@pytest.mark.parametrize(("shown", "runs"), [("x", [None]), ("y", [])])
def test_a_change_by_hand_runs_its_page_unless_that_was_left(shown: str, runs: list[None]) -> None:
    started, state = list[str | None](), SessionState()
    known: Any = WidgetMetadata("text", lambda value: value, lambda value: value, "string_value")
    state._set_widget_metadata(known)
    state._new_widget_state.set_widget_from_proto(WidgetState(id="text", string_value="a"))
    session: Any = SimpleNamespace(
        page_script_hash="x",
        _state=AppSessionState.APP_NOT_RUNNING,
        _scriptrunner=None,
        _session_state=state,
        has_fragment=lambda name: True,
        _create_scriptrunner=lambda run: started.append(run.fragment_id),
    )
    for page, text in ("x", "a"), (shown, "b"):
        session.page_script_hash = page
        message = ClientState(page_script_hash="x", fragment_id="courier")
        message.widget_states.widgets.add(id="text", string_value=text)
        AppSession.request_rerun(session, message)
    assert started == ["courier", *runs]
