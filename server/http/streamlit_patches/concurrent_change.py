"""Lets the whole page run where a control outside the fragment was changed by hand in the tick in which the
fragment spoke. A browser makes one message of what is said to it in one tick, about the fragment that spoke first:
the Enter behind a text is lost if a view asks just then. A control whose value differs from that of the message
before, and from what it stands at, was changed by hand; what the server has set was not."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from functools import wraps
from typing import Any

from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.state.common import WidgetMetadata
from streamlit.runtime.state.session_state import SessionState, WStates

READ = {
    "app_session:AppSession.request_rerun": "fc6c34000751765e",
    "state.session_state:SessionState._getitem": "b5d03259e32e7c9f",
    "state.session_state:WStates.set_widget_from_proto": "bb8db8b3070148db",
}


MOST_VALUES = 8  # that a control stood at lately


def apply() -> None:
    request = AppSession.request_rerun

    @wraps(request)
    def request_for_all(self: AppSession, client_state: ClientState | None) -> None:
        if client_state is not None:
            before, values = self.__dict__.get("said", {}), self.__dict__.setdefault("values", {})
            said = self.__dict__["said"] = {one.id: one for one in client_state.widget_states.widgets}
            for id in said:
                _keep_value(self._session_state, id, values.setdefault(id, deque(maxlen=MOST_VALUES)))
            if client_state.fragment_id and any(
                _is_outside(self._session_state, id, client_state.fragment_id)
                and _is_changed_by_hand(self._session_state, one, before.get(id), values[id])
                for id, one in said.items()
            ):
                client_state.fragment_id = ""
        request(self, client_state)

    AppSession.request_rerun = request_for_all  # type: ignore[method-assign]


def _keep_value(state: SessionState, id: str, values: deque[Any]) -> None:
    """Appends what a control stands at to its `values`, where that is another one."""
    metadata = state._new_widget_state.widget_metadata.get(id)
    if metadata is None or _is_trigger(metadata):
        return
    try:
        value = state._getitem(id, state._key_id_mapper.id_key_mapping.get(id))
    except KeyError:
        return
    if not values or values[-1] != value:
        values.append(value)


def _is_trigger(metadata: WidgetMetadata[Any]) -> bool:
    """False for a control of which a browser has said that it holds nothing: Streamlit then forgets its kind."""
    return "trigger" in (metadata.value_type or "")


def _is_outside(state: SessionState, id: str, fragment: str) -> bool:
    metadata = state._new_widget_state.widget_metadata.get(id)
    return metadata is not None and metadata.fragment_id != fragment


def _is_changed_by_hand(
    state: SessionState, said: WidgetState, before: WidgetState | None, values: Collection[Any]
) -> bool:
    """True for a button that was pressed too. What is said of a control for the first time is what it was drawn with,
    and one of its last `values` comes from the server."""
    metadata = state._new_widget_state.widget_metadata[said.id]
    if _is_trigger(metadata):
        return bool(getattr(said, metadata.value_type))
    if before is None or before == said or not values:
        return False
    heard = WStates()
    heard.set_widget_metadata(metadata)
    heard.set_widget_from_proto(said)
    return heard[said.id] not in values
