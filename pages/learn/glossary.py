"""Every term of the course and of the app, with what it means."""

import streamlit as st

from pages.controls.learn.glossary import link_terms, terms
from pages.controls.words import translate as _
from views.core.markdown import escape_markdown

MENU = {"title": "Glossary", "address": "glossary", "place": 3}

asked = st.query_params.get("term", "")
known = terms()
st.markdown("## " + _("Glossary"))
chosen = st.selectbox(
    _("term"), list(known), index=list(known).index(asked) if asked in known else None, key="glossary term",
    placeholder=_("search"), width=320, format_func=lambda term: known[term].name,
)  # fmt: skip
if chosen:
    st.query_params["term"] = chosen
    with st.container(border=True):
        st.markdown(f"**{escape_markdown(known[chosen].name)}**\n\n{link_terms(known[chosen].meaning)}")
others = [
    f"**{escape_markdown(one.name)}**  \n{link_terms(one.meaning)}" for term, one in known.items() if term != chosen
]
st.markdown("\n\n".join(others))  # in one: a browser takes as long for each element as for the words in it
