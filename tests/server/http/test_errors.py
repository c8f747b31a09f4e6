"""An error on a page is a number there, and its kind and place in the log."""

import logging

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

SCRIPT = """
import streamlit as st
from server.http.errors import tell_error

st.write("before")
try:
    open("/a/secret/place")
except OSError as error:
    tell_error(error)
"""


@pytest.mark.parametrize("shows", ["none", "full"])
def test_a_visitor_reads_a_number_of_the_log_and_no_path(
    shows: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    get = st.get_option
    monkeypatch.setattr(st, "get_option", lambda name: shows if name == "client.showErrorDetails" else get(name))
    with caplog.at_level(logging.ERROR, "loupe"):
        app = AppTest.from_string(SCRIPT).run()
    assert not app.exception and app.markdown[0].value == "before"
    assert len(app.error) == len(caplog.records) == (shows == "none")
    for told, record in zip(app.error, caplog.records, strict=True):
        assert f"number {record.number}" in told.value and "secret" not in told.value  # type: ignore[attr-defined]
        assert "FileNotFoundError at " in record.getMessage() and "/a/secret" not in record.getMessage()
