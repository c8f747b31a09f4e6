"""A widget that asks for one value of the session is given that one, and the same as before."""

import pytest
from streamlit.runtime.state.session_state import SessionState
from streamlit.testing.v1 import AppTest

MENUS = 30


def script() -> None:
    import streamlit as st

    st.session_state.setdefault("kept", "a word")
    for number in range(st.session_state.get("menus", 0)):
        st.selectbox(f"menu {number}", ["one", "two"], key=f"menu {number}", index=None)
    st.text_input("no key")


def test_a_value_is_looked_up_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[str]()
    given = SessionState.__getitem__
    monkeypatch.setattr(SessionState, "__getitem__", lambda self, key: asked.append(key) or given(self, key))
    app = AppTest.from_function(script)
    app.session_state["menus"] = MENUS
    app.run()
    assert not app.exception
    assert len(asked) < 10 * MENUS  # with all presented at each menu, MENUS squared and more


def test_what_a_script_can_read_is_what_streamlit_says() -> None:
    app = AppTest.from_function(script)
    app.session_state["menus"] = 2
    app.run().selectbox[1].select("two").run()
    state = app.session_state._state
    visible, whole = state.filtered_state, state._state.filtered_state
    assert dict(visible) == whole
    assert len(visible) == len(whole)
    assert visible["menu 1"] == "two"
    assert all(key not in visible for key in ("menu 7", *state._state._new_widget_state))
