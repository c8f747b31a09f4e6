"""What a browser says, with a message about a fragment, of controls outside it is passed over, unless it is news."""

from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.app_session import AppSession, AppSessionState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from server.http.streamlit_patches import fragment_states

BOTH = {"outside", "inside"}


@pytest.mark.parametrize(("fragments", "kept", "changed"), [(["courier"], "set", {"inside"}), (None, "stale", BOTH)])
def test_a_control_outside_keeps_what_the_server_set_and_does_not_count_as_changed(
    fragments: list[str] | None, kept: str, changed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = SimpleNamespace(fragment_ids_this_run=None)
    monkeypatch.setattr(fragment_states, "get_script_run_ctx", lambda: running)
    state = SessionState()
    for widget, fragment in (("outside", None), ("inside", "courier")):
        state._set_widget_metadata(WidgetMetadata(widget, str, str, "string_value", fragment_id=fragment))

    def come(**values: str) -> None:
        widgets = [WidgetState(id=widget, string_value=value) for widget, value in values.items()]
        state.on_script_will_rerun(WidgetStates(widgets=widgets))

    come(outside="set", inside="one")
    running.fragment_ids_this_run = fragments
    come(outside="stale", inside="two", unknown="three")
    assert (state["outside"], state["inside"]) == (kept, "two")
    assert {widget for widget in BOTH & set(state._new_widget_state) if state._widget_changed(widget)} == changed


@pytest.mark.parametrize(
    ("stands", "said", "presses", "whole"),  # said: before, and now
    [
        ("a", "ab", False, True),  # typed as the view asked
        ("b", "aa", False, False),  # set by the server, of which the browser has not heard
        ("b", "ab", False, False),  # and has heard
        ("b", "-a", False, False),  # drawn with it, before the server set another
        ("a", "aa", True, True),
        ("a", "aa", False, False),
    ],
)
def test_a_message_that_was_made_of_two_runs_the_whole_page(stands: str, said: str, presses: bool, whole: bool) -> None:
    state, started = SessionState(), []
    for widget, kind in (("text", "string_value"), ("button", "trigger_value")):
        state._set_widget_metadata(WidgetMetadata(widget, str, str, kind))
    state._set_widget_metadata(WidgetMetadata("ask", str, str, "json_trigger_value", fragment_id="courier"))
    state._new_widget_state.set_from_value("text", stands)
    session = SimpleNamespace(
        page_script_hash="walkthrough", _state=AppSessionState.APP_NOT_RUNNING, _scriptrunner=None,
        _session_state=state, has_fragment=lambda name: True, _client_state=ClientState(),
        _create_scriptrunner=lambda run: started.append(run.fragment_id or ""), id="one",
    )  # fmt: skip
    for text, pressed in ((said[0], False), (said[1], presses)):
        widgets = [WidgetState(id="ask", json_trigger_value="[]")]
        widgets += [WidgetState(id="text", string_value=text)] if text != "-" else []
        widgets += [WidgetState(id="button", trigger_value=True)] if pressed else []
        asked = ClientState(fragment_id="courier", page_script_hash="walkthrough")
        asked.widget_states.widgets.extend(widgets)
        AppSession.request_rerun(session, asked)  # type: ignore[arg-type]
    assert started[1] == ("" if whole else "courier")


def test_what_the_server_set_a_moment_ago_is_no_news() -> None:
    """A token is appended twice, and the view that asks in between has heard of the first."""
    state, started = SessionState(), []
    state._set_widget_metadata(WidgetMetadata("text", str, str, "string_value"))
    state._set_widget_metadata(WidgetMetadata("ask", str, str, "json_trigger_value", fragment_id="courier"))
    session = SimpleNamespace(
        page_script_hash="walkthrough", _state=AppSessionState.APP_NOT_RUNNING, _scriptrunner=None,
        _session_state=state, has_fragment=lambda name: True, _client_state=ClientState(),
        _create_scriptrunner=lambda run: started.append(run.fragment_id or ""), id="one",
    )  # fmt: skip
    for stands, said, fragment in (("a", "a", ""), ("ab", "a", ""), ("abc", "ab", "courier"), ("abc", "ax", "courier")):
        state._new_widget_state.set_from_value("text", stands)
        asked = ClientState(fragment_id=fragment, page_script_hash="walkthrough")
        asked.widget_states.widgets.append(WidgetState(id="text", string_value=said))
        AppSession.request_rerun(session, asked)  # type: ignore[arg-type]
    assert started == ["", "", "courier", ""]
