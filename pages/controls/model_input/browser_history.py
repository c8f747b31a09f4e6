"""The browser's way back, and forward: where its history leads to a page, Streamlit gives each control that the address
does not name its usual value, whatever the session holds. So the address is completed with what was looked at last."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx


def went_back() -> bool:
    """Tells whether the browser's history led here."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def entry_address() -> dict[str, str]:
    """Query of the entry of the browser's history that is shown; `st.query_params` lacks what is bound to controls of
    the page before, too."""
    context = get_script_run_ctx()
    return {} if context is None else dict(parse_qsl(context.query_string, keep_blank_values=True))


def complete(field: str, usual: Any) -> None:
    """Lets the address name what a control that stands at `usual` otherwise was left at. Call it before the control is
    drawn; a reload, or the link, then opens the same."""
    context, value = get_script_run_ctx(), st.session_state.get(field, usual)
    if context is None or not context.is_history_navigation or field in st.query_params or value == usual:
        return
    with context.session_state.query_params() as address:
        address.set_corrected_value(field, str(value), "string_value")  # in place of the entry that was come to
        address.set_initial_query_params_from_current()


def drop(field: str) -> None:
    """Takes out of the address what a control must not read. Call it before the control is drawn."""
    del st.query_params[field]
    if (context := get_script_run_ctx()) is not None:
        with context.session_state.query_params() as address:
            address.set_initial_query_params_from_current()
