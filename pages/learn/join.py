"""Join a class: by the code that the teacher shows, under a name of one's own."""

import streamlit as st

from pages.controls.classes.banner import draw_own
from pages.controls.classes.grades import launched_name
from pages.controls.classes.who import JOINED, classes, find_damage, find_joined_class, find_left, visitor_id
from pages.controls.state.page_state import PageState
from pages.controls.state.parameter import Text
from pages.controls.words import language
from pages.controls.words import translate as _
from views.core.markdown import escape_markdown

MENU = {"title": "Join a class", "address": "join", "place": 5}
JOIN = PageState("join", Text("code", "", 20, label="code, five letters"))
NAME = "class name"

here = JOIN.open()
language()
st.markdown(f"## {_('Join a class')}")
if found := find_joined_class():
    draw_own(*found)
    st.stop()
find_damage()
code = here.text("code", label=_("code, five letters"), width=220).strip().upper()
with st.form("class join form", border=False):
    name = st.text_input(_("your name in this class"), launched_name(), key=NAME, width=220)
    joins = st.form_submit_button(_("Join"), type="primary", key="class join")
st.caption(
    _(
        "The teacher sees this name beside what you hand in, and what your pages show while the class goes on; a "
        "nickname will do. It stays on this server, and is deleted with the session."
    )
)
for room, learner in find_left():
    with st.expander(escape_markdown(room.code), icon=":material/history:"):
        draw_own(room, learner)
if joins:
    try:
        classes().join(code, name, visitor_id())
    except ValueError as error:
        st.warning(escape_markdown(str(error)[:1].upper() + str(error)[1:]))
    else:
        JOINED.set(code)
        st.rerun()
