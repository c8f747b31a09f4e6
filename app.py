"""The Streamlit script: page config and the navigation table, the whole app at a glance."""

from pathlib import Path
from typing import Literal

import streamlit as st

from views.core.component import begin
from views.core.turns import turns

THEME = Path(__file__).parent / "assets" / "theme"
ABOUT = "**Loupe**, a laboratory for looking inside transformers. What is drawn is what a tensor holds."

# Streamlit opens its default page at "/" only. The first page shall open at its own name too, as every other
# page does, and at /home: so it stands here three times, and the menu shows the one that the address asks for.
WALKTHROUGH = "pages/explore/walkthrough.py"
named = (st.context.url or "").endswith("/walkthrough")
at_root: Literal["hidden", "visible"] = "hidden" if named else "visible"
at_name: Literal["hidden", "visible"] = "visible" if named else "hidden"

GROUPS = {
    "Explore": [
        st.Page(WALKTHROUGH, title="Walkthrough", url_path="first", default=True, visibility=at_root),
        st.Page(WALKTHROUGH, title="Walkthrough", url_path="home", visibility="hidden"),
        st.Page(WALKTHROUGH, title="Walkthrough", url_path="walkthrough", visibility=at_name),
        st.Page("pages/explore/attention.py", title="Attention", url_path="attention"),
        st.Page("pages/explore/logit_lens.py", title="Logit lens", url_path="logit_lens"),
        st.Page("pages/explore/generate.py", title="Generate", url_path="generate"),
        st.Page("pages/explore/compare.py", title="Compare", url_path="compare"),
    ],
    "Train": [
        st.Page("pages/train/lab.py", title="Train a model", url_path="train"),
        st.Page("pages/train/adapt.py", title="Adapt a model", url_path="adapt"),
    ],
    "Models": [
        st.Page("pages/inspect/checkpoint.py", title="Open a model", url_path="checkpoint"),
        st.Page("pages/inspect/architecture.py", title="Anatomy", url_path="architecture"),
        st.Page("pages/inspect/long_sequences.py", title="Long context", url_path="long_sequences"),
    ],
}
# Streamlit marks the present page in an open menu only; its name stands behind that of its menu too.
PRESENT = """<style>[data-testid="stTopNav"] .rc-overflow-item:nth-child(%d) [data-testid="stTopNavSection"] p
{opacity:1}[data-testid="stTopNav"] .rc-overflow-item:nth-child(%d) [data-testid="stTopNavSection"] p::after
{content:" · %s";font-weight:600}</style>"""

page = st.navigation(GROUPS, position="top")

st.set_page_config(
    page_title=f"{page.title} · Loupe",
    page_icon=str(THEME / "loupe.svg"),
    layout="wide",
    menu_items={"About": ABOUT},  # an entry keeps the menu, and with it the choice between light and dark
)
st.logo(str(THEME / "loupe.svg"), size="small")
st.html(THEME / "app.css")
group = next(number for number, pages in enumerate(GROUPS.values(), 1) if page in pages)
st.html(PRESENT % (group, group, page.title))
begin(page.url_path)  # by which a page knows that it has just been turned to
with turns.take():
    page.run()
