"""Texts of others, each escaped on its own in the places where Streamlit draws Markdown."""

import sys
from pathlib import Path

import streamlit as st

sys.path.insert(0, str(Path(__file__).resolve().parents[4]))

from tests.views.test_markdown import PAYLOADS
from views.core.markdown import code_markdown, escape_markdown

for payload in PAYLOADS:
    with st.container(key=f"payload-{PAYLOADS.index(payload)}"):
        st.markdown(escape_markdown(payload))
        st.warning(f"Expected a name; got “{escape_markdown(payload)}”: change it.")
        st.markdown(f"**{code_markdown(payload)}**")
        st.button(escape_markdown(payload), key=f"button {PAYLOADS.index(payload)}", help=escape_markdown(payload))
st.text("all drawn")
