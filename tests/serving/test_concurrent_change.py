"""A message is judged whatever a browser says a control holds."""

from collections import deque
from typing import Any

import pytest
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState

from serving.streamlit_patches.concurrent_change import _keep_value


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
