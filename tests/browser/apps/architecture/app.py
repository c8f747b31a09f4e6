"""The architecture page alone, as the app would show it."""

from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parents[4]

page = st.navigation([st.Page(ROOT / "pages/inspect/architecture.py", title="Architecture")], position="top")
st.set_page_config(layout="wide")
st.html(ROOT / "assets" / "theme" / "app.css")
page.run()
