"""A widget that asks for one value of the session state gets that one.

Streamlit's menus, fields and sliders each ask `filtered_state`, which presents every value of the session anew to say
what one of them is: 30 % of a run of Anatomy with its 25 menus. Here it presents what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from streamlit.runtime.state.common import is_element_id
from streamlit.runtime.state.safe_session_state import SafeSessionState
from streamlit.runtime.state.session_state import _is_internal_key

READ = {"state.safe_session_state:SafeSessionState.filtered_state": "1bcc3b710ffa9dd2"}


class VisibleState(Mapping[str, Any]):
    """The values that have a key, which a script can read; all of them only to count or list them."""

    def __init__(self, state: SafeSessionState) -> None:
        self.state = state

    def __getitem__(self, key: str) -> Any:
        if is_element_id(key) or _is_internal_key(key):
            raise KeyError(key)
        with self.state._lock:
            return self.state._state[key]

    def __iter__(self) -> Iterator[str]:
        with self.state._lock:
            return iter(self.state._state.filtered_state)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))


def apply() -> None:
    SafeSessionState.filtered_state = property(VisibleState)  # type: ignore[assignment, method-assign]
