"""What a link can hold of the page Class session: a room, a step to add, or the steps of a session to hold again."""

from __future__ import annotations

from pages.controls.state.history import READABLE
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Text

TEACH = PageState(
    "teach", Text("room", "", 20, label="code"), Text("secret", "", 100), Text("step", "", READABLE),
    Text("steps", "", READABLE),
)  # fmt: skip
