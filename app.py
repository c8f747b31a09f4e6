"""The Streamlit script: page config and the navigation table, the whole app at a glance."""

from pathlib import Path
from typing import Literal

import streamlit as st

from views.core.component import begin

THEME = Path(__file__).parent / "assets" / "theme"
ABOUT = "**Loupe**, a laboratory for looking inside transformers. What is drawn is what a tensor holds."

# Streamlit opens its default page at "/" only. The first page shall open at its own name too, as every other
# page does, so it stands here twice, and the menu shows the one that the address asks for.
WALKTHROUGH = "pages/explore/walkthrough.py"
named = (st.context.url or "").endswith("/walkthrough")
at_root: Literal["hidden", "visible"] = "hidden" if named else "visible"
at_name: Literal["hidden", "visible"] = "visible" if named else "hidden"

page = st.navigation(
    [
        st.Page(WALKTHROUGH, title="Walkthrough", url_path="home", default=True, visibility=at_root),
        st.Page(WALKTHROUGH, title="Walkthrough", url_path="walkthrough", visibility=at_name),
        st.Page("pages/explore/attention.py", title="Attention", url_path="attention"),
        st.Page("pages/explore/generate.py", title="Generate", url_path="generate"),
        st.Page("pages/explore/compare.py", title="Compare", url_path="compare"),
        st.Page("pages/train/lab.py", title="Train", url_path="train"),
        st.Page("pages/inspect/architecture.py", title="Architecture", url_path="architecture"),
        st.Page("pages/inspect/checkpoint.py", title="Checkpoint", url_path="checkpoint"),
        st.Page("pages/inspect/long_sequences.py", title="Long sequences", url_path="long_sequences"),
    ],
    position="top",
)

st.set_page_config(
    page_title=f"{page.title} · Loupe",
    page_icon=str(THEME / "loupe.svg"),
    layout="wide",
    menu_items={"About": ABOUT},  # an entry keeps the menu, and with it the choice between light and dark
)
st.logo(str(THEME / "loupe.svg"), size="small")
st.html(THEME / "app.css")
begin(page.url_path)  # by which a page knows that it has just been turned to
page.run()
