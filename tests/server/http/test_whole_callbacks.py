"""A click is done whole, though the next message comes while its callback runs."""

from streamlit.testing.v1 import AppTest


def script() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    def act() -> None:
        get_script_run_ctx().script_requests.request_rerun(RerunData())  # the next message
        st.session_state["before"] = True
        st.session_state["done"] = True

    st.button("go", on_click=act)
    st.text("drawn again")


def test_a_callback_is_not_interrupted_by_the_next_message() -> None:
    app = AppTest.from_function(script).run()
    app.button[0].click().run()
    assert app.session_state["done"]
    assert [one.value for one in app.text] == ["drawn again"]
