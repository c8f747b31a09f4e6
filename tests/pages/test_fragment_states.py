"""What a browser says, with a message about a fragment, of the controls outside it changes nothing."""

from types import SimpleNamespace

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState, WidgetStates
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from pages.controls import messages
from pages.controls.messages import lose_no_message

BOTH = {"outside", "inside"}


@pytest.mark.parametrize(("fragments", "kept", "changed"), [(["courier"], "set", {"inside"}), (None, "stale", BOTH)])
def test_a_control_outside_keeps_what_the_server_set_and_does_not_count_as_changed(
    fragments: list[str] | None, kept: str, changed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_no_message()
    lose_no_message()
    running = SimpleNamespace(fragment_ids_this_run=None)
    monkeypatch.setattr(messages, "get_script_run_ctx", lambda: running)
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
