"""What a link can hold of the page Class session: a room, a step to add, the steps of a session to hold again, or a
platform's question what to place in a course."""

from __future__ import annotations

from pages.controls.state.history import READABLE
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Text

TEACH = PageState(
    "teach", Text("room", "", 20, label="code"), Text("secret", "", 100), Text("step", "", READABLE),
    Text("steps", "", READABLE), Text("screen", "", 12), Text("linking", "", 40),
)  # fmt: skip
