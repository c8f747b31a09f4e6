"""An error that nothing on a page has caught: visitors are told a number, under which the log says what it was."""

from __future__ import annotations

import logging
import os
import secrets

import streamlit as st

from engine.work_limit import WorkLimitError
from server.http.logs import describe_error
from views.core.markdown import escape_markdown

TOLD = (
    "Something failed here that Loupe did not expect. What stands around it is as it was. Reload the page; if it "
    "stays, report it with the number {number}, under which the log of this server says what it was."
)
DETAILS, VARIABLE = "client.showErrorDetails", "STREAMLIT_CLIENT_SHOW_ERROR_DETAILS"  # as Streamlit calls them
log = logging.getLogger("loupe")


def hide_details() -> None:
    """A visitor reads no path and no text of somebody else's, unless who runs the server asks for that."""
    st.set_option(DETAILS, os.environ.get(VARIABLE, "none"))


def tell_error(error: Exception) -> bool:
    """Draws the sentence where the page ended, and writes the log's line; True, as Streamlit then draws nothing itself.

    A server that shows details leaves that to Streamlit.
    """
    if isinstance(error, WorkLimitError):
        st.warning(escape_markdown(error))
        return True
    if st.get_option(DETAILS) != "none":
        return False
    number = secrets.token_hex(3)
    found = describe_error(type(error), error.__traceback__)
    said = "An error on a page has the number %s: %s at %s"
    log.error(said, number, found["error"], found["at"], extra={"number": number} | found)
    st.error(TOLD.format(number=number))
    return True
