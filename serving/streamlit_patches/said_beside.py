"""Lets the whole page run where a control outside the fragment was changed by hand in the tick in which the
fragment spoke. A browser makes one message of what is said to it in one tick, about the fragment that spoke first:
the Enter behind a text is lost if a view asks just then. A control whose value differs from that of the message
before, and from what it stands at, was changed by hand; what the server has set was not."""

from __future__ import annotations

from collections import deque
from functools import wraps
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.session_state import SessionState, WStates

READ = {
    "app_session:AppSession.request_rerun": "fc6c34000751765e",
    "state.session_state:SessionState._getitem": "b5d03259e32e7c9f",
    "state.session_state:WStates.set_widget_from_proto": "bb8db8b3070148db",
}


NOTHING = object()
KEPT = 8  # values that a control stood at


def apply() -> None:
    request = AppSession.request_rerun

    @wraps(request)
    def request_for_all(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None:
            before, stood = self.__dict__.get("said", {}), self.__dict__.setdefault("stood", {})
            said = self.__dict__["said"] = {one.id: one for one in client_state.widget_states.widgets}
            news = False
            for id, one in said.items():
                if self._session_state._new_widget_state.widget_metadata.get(id) is not None:
                    past = stood.setdefault(id, deque[Any](maxlen=KEPT))
                    news |= _is_news(self._session_state, one, before.get(id), past, client_state.fragment_id)
            if news and client_state.fragment_id:
                client_state.fragment_id = ""
        request(self, client_state)

    AppSession.request_rerun = request_for_all  # type: ignore[method-assign]


def _is_news(
    state: SessionState, said: WidgetState, before: WidgetState | None, stood: deque[Any], fragment: str
) -> bool:
    """True if a control outside the fragment was changed by hand, or if it is a button that was pressed. What is said
    of a control for the first time is what it was drawn with, and what it `stood` at lately comes from the server."""
    metadata = state._new_widget_state.widget_metadata[said.id]
    if metadata.fragment_id and metadata.fragment_id == fragment:
        return False
    if "trigger" in metadata.value_type:
        return bool(getattr(said, metadata.value_type))
    stands = _value(state, said.id)
    if stands is not NOTHING and (not stood or stood[-1] != stands):
        stood.append(stands)
    if before is None or before == said or not stood:
        return False
    heard = WStates()
    heard.set_widget_metadata(metadata)
    heard.set_widget_from_proto(said)
    return not any(heard[said.id] == value for value in stood)


def _value(state: SessionState, id: str) -> Any:
    try:
        return state._getitem(id, state._key_id_mapper.id_key_mapping.get(id))
    except KeyError:
        return NOTHING
