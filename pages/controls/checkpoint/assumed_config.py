"""The values that stand in for a config.json that is not there, in a form."""

import json
from typing import Any

import streamlit as st

from engine.checkpoints.report import Assumption
from engine.json_text import parse_json
from engine.runtime import library
from pages.controls.checkpoint.parameters import CHECKPOINT
from pages.controls.state.session import widget_value
from views.core.markdown import escape_markdown


def correct(name: str, assumed: tuple[Assumption, ...]) -> None:
    """Values that stand in for a config.json that is not there, to be confirmed or changed: what is assumed then stands
    in the model's name as given."""
    guessed, shown = ([one for one in assumed if one.certain is certain] for certain in (False, True))
    listed = ", ".join(f"{one.key} {one.value}" for one in guessed)
    label = f"Opened without a config.json: {f'{listed} assumed' if guessed else 'all values are confirmed'}"
    with st.expander(escape_markdown(label), key="assumed"), st.form("assumed values", border=False):
        for said, ones in (("No tensor shows these:", guessed), ("The tensors, or you, say these:", shown)):
            if not ones:
                continue
            st.caption(said)
            with st.container(horizontal=True, gap="small"):
                for one in ones:
                    st.text_input(escape_markdown(one.key), format_value(one.value), help=escape_markdown(one.why),
                                  width=170, key=f"assumed {one.key} {name}")  # fmt: skip
        if not st.form_submit_button("Open with these"):
            return
        given = {one.key: read(widget_value(f"assumed {one.key} {name}")) for one in assumed}
        changes = {one.key: given[one.key] for one in assumed if not one.certain or given[one.key] != one.value}
        if changes:
            before = library.parse_name(name).config
            CHECKPOINT.rerun_with("model", library.rename_with(name, config={**before, **changes}))


def format_value(value: Any) -> str:
    """Writes a value as config.json has it, a text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def read(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text
