"""Generate: from the distribution of the next token to a text, step by step."""

import streamlit as st

from pages.controls.generate.export import of_writing
from pages.controls.generate.prompt import prompted
from pages.controls.generate.settings import RULES, settings
from pages.controls.share.links import honour_link
from views.core.component import courier, view
from views.generate.answers import answered, streamed
from views.generate.generate import drawn
from views.generate.generation_cache import Live
from views.generate.session import Writing
from views.generate.surprise_cache import Measured

picture = view("generate", events=("interrupt",))

honour_link(RULES)
name, checkpoint, prompt, call = prompted()
live = st.session_state.setdefault("live writing", Live())
measured = st.session_state.setdefault("measured texts", Measured())
writing = Writing(name, checkpoint, prompt, call, settings(checkpoint), live, measured)
taking = of_writing(writing)
shown = drawn(writing, {"take": taking.header})
picture(shown, key="generate view")
answering = taking.answering(shown, lambda query: answered(writing, query))
courier("courier", answering, lambda query: streamed(writing, query))
