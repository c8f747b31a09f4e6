"""Leaves controls outside a fragment as they are where a message is about the fragment. Of a control that the
server has just set, by a callback or the way back, the browser may not have heard yet: what it says of it then is
the value before, which Streamlit takes for a change by hand. One that is changed by hand sends a message of its
own."""

from __future__ import annotations

from functools import wraps
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetStates
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.state.session_state import SessionState

READ = {
    "state.session_state:SessionState.on_script_will_rerun": "d94c233337834bb9",
}


def apply() -> None:
    take_in = SessionState.on_script_will_rerun

    @wraps(take_in)
    def take_in_own(self: SessionState, states: WidgetStates | None, **options: Any) -> None:
        context = get_script_run_ctx()
        if states is not None and context is not None and context.fragment_ids_this_run:
            states = WidgetStates(
                widgets=[one for one in states.widgets if _is_of(self, one.id, context.fragment_ids_this_run)]
            )
        take_in(self, states, **options)

    SessionState.on_script_will_rerun = take_in_own  # type: ignore[assignment, method-assign]


def _is_of(state: SessionState, widget: str, fragments: list[str]) -> bool:
    """True if a widget stands in one of the fragments, or is not known yet."""
    known = state._new_widget_state.widget_metadata.get(widget)
    return known is None or known.fragment_id in fragments
