"""Lets the whole page run where a control outside the fragment was changed by hand in the tick in which the
fragment spoke. A browser makes one message of what is said to it in one tick, about the fragment that spoke first:
the Enter behind a text is lost if a view asks just then. A control whose value differs from that of the message
before, and from what it stands at, was changed by hand; what the server has set was not."""

from __future__ import annotations

from functools import wraps

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.session_state import SessionState, WStates

READ = {
    "app_session:AppSession.request_rerun": "fc6c34000751765e",
    "state.session_state:SessionState._getitem": "b5d03259e32e7c9f",
    "state.session_state:WStates.set_widget_from_proto": "bb8db8b3070148db",
}


def apply() -> None:
    request = AppSession.request_rerun

    @wraps(request)
    def request_for_all(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None:
            before = self.__dict__.get("said", {})
            said = self.__dict__["said"] = {one.id: one for one in client_state.widget_states.widgets}
            if client_state.fragment_id:
                new = [one for id, one in said.items() if before.get(id) != one]
                if any(_is_news(self._session_state, one, client_state.fragment_id) for one in new):
                    client_state.fragment_id = ""
        request(self, client_state)

    AppSession.request_rerun = request_for_all  # type: ignore[method-assign]


def _is_news(state: SessionState, said: WidgetState, fragment: str) -> bool:
    """True if a control outside the fragment stands at something else, or if it is a button that was pressed."""
    metadata = state._new_widget_state.widget_metadata.get(said.id)
    if metadata is None or metadata.fragment_id == fragment:
        return False
    if "trigger" in metadata.value_type:
        return bool(getattr(said, metadata.value_type))
    heard = WStates()
    heard.set_widget_metadata(metadata)
    heard.set_widget_from_proto(said)
    try:
        stands = state._getitem(said.id, state._key_id_mapper.id_key_mapping.get(said.id))
    except KeyError:
        return False
    return bool(heard[said.id] != stands)
