"""An error that nothing on a page has caught: visitors are told a number, under which the log says what it was."""

from __future__ import annotations

import logging
import secrets

import streamlit as st

from server.http.logs import describe_error

TOLD = (
    "Something failed here that Loupe did not expect. What stands around it is as it was. Reload the page; if it "
    "stays, report it with the number {number}, under which the log of this server says what it was."
)
log = logging.getLogger("loupe")


def tell_error(error: Exception) -> bool:
    """Draws the sentence where the page ended, and writes the log's line; True, as Streamlit then draws nothing itself.

    A server that shows details (Streamlit's client.showErrorDetails, "none" in .streamlit/config.toml) leaves that to
    Streamlit.
    """
    if st.get_option("client.showErrorDetails") != "none":
        return False
    number = secrets.token_hex(3)
    found = describe_error(type(error), error.__traceback__)
    said = "An error on a page has the number %s: %s at %s"
    log.error(said, number, found["error"], found["at"], extra={"number": number} | found)
    st.error(TOLD.format(number=number))
    return True
