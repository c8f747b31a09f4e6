"""What a teacher places in a course of a platform: a lesson, or a session of theirs."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from pages.controls.classes.who import classes, guard, visitor_id
from pages.controls.learn.course import lessons
from pages.controls.state.page_state import Here
from pages.controls.state.session import widget_value
from pages.controls.words import kept_entries
from server.classes.store import Unreachable, keeps_classes
from server.lti.linking import choose_link, find_linking
from server.settings import CLASSES_PLACE
from views.core.markdown import escape_markdown

FIELD = "class linking"


def draw_linking(here: Here) -> None:
    """Draws it for a teacher who came from there to choose; server/http/lti.py takes the answer back."""
    state = here["linking"]
    if not state or not keeps_classes(CLASSES_PLACE):
        return
    try:
        _linking, title, _page = find_linking(classes(), state)
    except Unreachable:
        raise
    except ValueError as error:
        here.assign("linking", "")
        st.warning(escape_markdown(f"Loupe {error}"))
        return
    if title:
        st.success(escape_markdown(f"“{title}” goes to your course: return to its window. This one can be closed."))
        return
    with st.container(border=True, key="class-linking"):
        st.markdown("**For your course**: choose a lesson, or a class session; one that you start below is listed too.")
        with st.container(horizontal=True, vertical_alignment="bottom"):
            offered = list_pages()
            st.selectbox("opens in the course", list(offered), None, key=FIELD, format_func=offered.__getitem__)
            st.button("Place in the course", key="class place", type="primary", on_click=place, args=(state, offered),
                      disabled=not widget_value(FIELD))  # fmt: skip


def list_pages() -> dict[str, str]:
    """Titles by what opens them."""
    open_rooms = [one.code for one in classes().rooms_of(visitor_id()) if not one.closed]
    pages = {code: f"Class session {code}" for code in open_rooms}
    found = {f"join?{urlencode({'code': code})}": title for code, title in pages.items()}
    return found | {f"course?{urlencode({'lesson': one.name} | kept_entries())}": one.title for one in lessons()}


@guard
def place(state: str, offered: dict[str, str]) -> None:
    if page := widget_value(FIELD):
        choose_link(classes(), state, offered[page], page)
