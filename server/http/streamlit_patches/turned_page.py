"""Lets a link that was clicked stand where the script asks to run again before it has heard of the click: what
`st.rerun` asks for is the address of the run that is going on, which Streamlit takes in place of the link's."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps

from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_requests import ScriptRequests, ScriptRequestType

READ = {
    "scriptrunner_utils.script_requests:ScriptRequests.request_rerun": "6163209cbaf80b0a",
    "scriptrunner_utils.script_requests:ScriptRequests._request_rerun_locked": "677ea7248cd590f3",
}


def apply() -> None:
    request = ScriptRequests.request_rerun

    @wraps(request)
    def request_there(self: ScriptRequests, asked: RerunData) -> bool:
        context = get_script_run_ctx()
        if context is not None and context.script_requests is self and self._state == ScriptRequestType.RERUN:
            here = (context.query_string, context.page_script_hash)
            if (asked.query_string, asked.page_script_hash) == here:
                there = self._rerun_data
                asked = replace(asked, query_string=there.query_string, page_script_hash=there.page_script_hash)
        return request(self, asked)

    ScriptRequests.request_rerun = request_there  # type: ignore[assignment, method-assign]
