"""The browser's way back, and forward: where its history leads to a page, Streamlit gives each control that the address
does not name its usual value, whatever the session holds. So the address is completed with what was looked at last."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequest, ScriptRequests, ScriptRequestType


def keep_going_back() -> None:
    """Lets the way back stand where a message follows it before its run is over, as a view's questions do. Streamlit
    takes that message for all there is to do, with the values that the controls had before. Call it before a script
    runs; a second call does nothing."""
    if getattr(ScriptRequests, "keeps_going_back", False):
        return
    request, interrupt = ScriptRequests.request_rerun, ScriptRequests.on_scriptrunner_yield

    @wraps(request)
    def request_too(self: ScriptRequests, asked: RerunData) -> bool:
        waits = self._state == ScriptRequestType.RERUN and self._rerun_data.is_history_navigation
        return request(self, replace(asked, is_history_navigation=True) if waits else asked)

    @wraps(interrupt)
    def interrupt_too(self: ScriptRequests) -> ScriptRequest | None:
        asked = interrupt(self)
        if asked is None or asked.type != ScriptRequestType.RERUN or not went_back():
            return asked
        return ScriptRequest(asked.type, replace(asked.rerun_data, is_history_navigation=True))

    ScriptRequests.request_rerun = request_too  # type: ignore[assignment, method-assign]
    ScriptRequests.on_scriptrunner_yield = interrupt_too  # type: ignore[method-assign]
    ScriptRequests.keeps_going_back = True  # type: ignore[attr-defined]


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
