"""The Streamlit script: page config and navigation, of the pages that pages/controls/menu.py finds."""

from typing import Literal

import streamlit as st

from engine.budget import budget
from engine.checkpoints.shipped import NoWeights
from engine.model.pass_queue import pass_queue
from engine.places import ASSETS
from engine.runtime.device import notifier
from pages.controls.classes.banner import draw_step
from pages.controls.classes.grades import report_grades
from pages.controls.classes.noting import note_visit
from pages.controls.classes.who import draw_unreachable
from pages.controls.learn.glossary import draw_terms, title_terms
from pages.controls.menu import entries
from pages.controls.notice import announce_wait, notify
from pages.controls.share.links import remember_hidden
from pages.controls.sign_in import draw_signed_in, require_sign_in
from pages.controls.state.history import keep_entry, use_present_names
from pages.controls.words import translate
from server.classes.store import Unreachable
from server.http.storage import require_storage
from server.http.streamlit_patches import patch_streamlit
from server.settings import MAX_FORWARDS, fill_budget
from views.core.component import begin, view
from views.core.markdown import escape_markdown
from views.core.turns import turns

THEME = ASSETS / "theme"
ABOUT = "**Loupe**, a laboratory for looking inside transformers. What is drawn is what a tensor holds."

fill_budget()  # under `streamlit run app.py` too, as what follows
patch_streamlit()
notifier.listener = notify
pass_queue.most, pass_queue.heavy, pass_queue.announce = MAX_FORWARDS, budget.heavy * 10**6, announce_wait

# Streamlit opens its default page at "/" only. The first page shall open at its own name too, as every other
# page does: so it stands here twice, and the menu shows the one that the address asks for.
first, *others = entries()
named = (st.context.url or "").endswith(f"/{first.address}")
at_root: Literal["hidden", "visible"] = "hidden" if named else "visible"
at_name: Literal["hidden", "visible"] = "visible" if named else "hidden"

GROUPS = {
    translate(first.group): [
        st.Page(first.path, title=translate(first.title), url_path="first", default=True, visibility=at_root),
        st.Page(first.path, title=translate(first.title), url_path=first.address, visibility=at_name),
    ]
}
for entry in others:
    menu = GROUPS.setdefault(translate(entry.group), [])
    menu.append(st.Page(entry.path, title=translate(entry.title), url_path=entry.address))
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
require_sign_in()
require_storage()
keep_entry()
use_present_names()
remember_hidden()
begin(page.url_path)  # by which a page knows that it has just been turned to
with st.container(key="header-end"):
    view("core/header")({"terms": title_terms()}, key="header")
draw_step()
with turns.take():
    try:
        try:
            page.run()
        finally:  # a page may end early, with a sentence
            note_visit()
            report_grades()
    except Unreachable as error:
        draw_unreachable(error)
    except NoWeights as error:
        st.warning(escape_markdown(error))
draw_terms(page.url_path)
draw_signed_in()
