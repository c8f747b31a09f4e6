"""What Streamlit knows of the browser's address and its history: the one place that reads it there.

Where the browser's history leads to a page, Streamlit gives each control that the address does not name its usual
value, whatever the session holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from engine.checkpoints.locate import current_name
from views.core.component import TURNED

READ = {  # as server/http/streamlit_patches/ does
    "scriptrunner_utils.script_run_context:ScriptRunContext.reset": "e08734cb66ff1e5a",
    "scriptrunner_utils.script_run_context:get_script_run_ctx": "dccbffa7ec2c9687",
    "state.query_params:QueryParams.bind_widget": "9ac13068d6e71707",
    "state.query_params:QueryParams.get_binding_for_param": "6fab01ef9ef617c2",
    "state.query_params:QueryParams.remove_param": "6ee6d9896bc35754",
    "state.query_params:QueryParams.set_corrected_value": "0d62d6952fbc2d67",
    "state.query_params:QueryParams.set_initial_query_params_from_current": "3f26f61efd785047",
    "state.safe_session_state:SafeSessionState.query_params": "3eea22642794d702",
    "state.session_state:SessionState.get_widget_id_from_key": "94a25d6f9a2e88e5",
    "state.session_state:SessionState.set_widgets_from_proto": "dc9968cd12a41271",
}
ENTRY = "loupe_entry"  # attribute of the context of a run, and entry of the session
READABLE = 2**19  # characters of a query; Streamlit reads nothing of a longer one
NAMES_A_MODEL = (
    "model", *(f"{letter}_model" for letter in "abcd"), "p_model", "p_instructed", "against", "base", "start",
)  # fmt: skip


def went_back() -> bool:
    """Tells whether the browser's history led here."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def keep_entry() -> None:
    """Keeps what the link says that a run of the whole script is for. Call it before anything is written into the
    address: of a link to another page Streamlit then forgets what is bound to controls of the page before. The query
    holds what that page's controls stood at before what the link says, which is thus what comes twice, or is new."""
    if (context := get_script_run_ctx()) is not None:
        said = parse_qsl(context.query_string, keep_blank_values=True)
        names, before = [name for name, _text in said], st.session_state.get(ENTRY, {})
        led = {name: text for name, text in said if names.count(name) > 1 or before.get(name) != text}
        setattr(context, ENTRY, led)
        st.session_state[ENTRY] = dict(said)


def led_address() -> dict[str, str]:
    """Query of the link to the page, in the first run of that page."""
    said: dict[str, str] = getattr(get_script_run_ctx(), ENTRY, {})
    return said | present_names(said)


def entry_address() -> dict[str, str]:
    """Query of the entry of the browser's history that is shown; `st.query_params` lacks what is bound to controls of
    the page before, too."""
    context = get_script_run_ctx()
    said = {} if context is None else dict(parse_qsl(context.query_string, keep_blank_values=True))
    return said | present_names(said)


def present_names(said: Mapping[str, Any]) -> dict[str, str]:
    """Present names of the models that an address names by a former one, by parameter."""
    named = {key: said[key] for key in NAMES_A_MODEL if key in said}
    return {key: new for key, name in named.items() if (new := current_name(str(name))) != str(name)}


def use_present_names() -> None:
    """Puts present names of models in place of former ones. Call it before a page reads its address."""
    for key, name in present_names(st.query_params).items():
        write(key, name)


def is_drawn(name: str) -> bool:
    """Tells whether a control that the address knows by this name was on this page when it was last drawn whole, or
    has been drawn since."""
    context = get_script_run_ctx()
    if context is None:
        return False
    with context.session_state.query_params() as address:
        binding = address.get_binding_for_param(name)
    return binding is not None and binding.script_hash == context.page_script_hash


def is_turned() -> bool:
    """Tells whether this run is the first of its page. Of a link that leads there `st.query_params` lacks what a
    control of the page before was bound to, and the query holds that control's value before the link's own."""
    return bool(st.session_state.get(TURNED)) and not is_fragment()


def is_heard(name: str) -> bool:
    """Tells whether the browser said what a control stands at, with the message that this run is for. With a link, even
    to the page that is shown, it says of none. Ask before the control is drawn."""
    context = get_script_run_ctx()
    if context is None:
        return False
    state = context.session_state._state
    id = state.get_widget_id_from_key(name)
    return id is not None and id in state._new_widget_state


def is_fragment() -> bool:
    """Tells whether a fragment of the page runs by itself."""
    context = get_script_run_ctx()
    return context is not None and bool(context.fragment_ids_this_run)


def write(field: str, said: str | list[str]) -> None:
    """Puts into the address what a control shall read. Call it before the control is drawn."""
    if (context := get_script_run_ctx()) is not None:
        with context.session_state.query_params() as address:
            address.set_corrected_value(field, said, "string_value" if isinstance(said, str) else "string_array_value")
            address.set_initial_query_params_from_current()


def drop(field: str) -> None:
    """Takes out of the address what a control must not read. Call it before the control is drawn."""
    if (context := get_script_run_ctx()) is not None:
        with context.session_state.query_params() as address:
            address.remove_param(field)
            address.set_initial_query_params_from_current()
