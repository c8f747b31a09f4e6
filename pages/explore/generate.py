"""Generate: from the distribution of the next token to a text, step by step."""

import streamlit as st

from pages.controls.links import honour_link
from pages.controls.prompt import prompted
from pages.controls.take_generate import of_writing
from pages.controls.writing import RULES, settings
from views.component import courier, view
from views.generate import drawn
from views.generate_answers import answered, streamed
from views.generate_live import Live
from views.generate_measured import Measured
from views.generate_writing import Writing

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
