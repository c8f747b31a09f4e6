"""Generate: from the distribution of the next token to a text, step by step."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.controls.generate.beam import draw_beam
from pages.controls.generate.cache import draw_cache
from pages.controls.generate.export import share_charts, tab_notes, writing_export
from pages.controls.generate.parameters import GENERATE
from pages.controls.generate.prompt import prompt_controls
from pages.controls.generate.prompting import draw_prompting
from pages.controls.generate.settings import settings
from pages.controls.generate.surprise import draw_surprise
from pages.controls.generate.tabs import PICTURE, TabContent, WritingRecord, branch_of, events, open_tab
from pages.controls.generate.temperature import draw_temperature
from pages.controls.generate.turn import keep_turn
from pages.controls.model_input.conversation import is_conversation
from pages.controls.model_input.model_input import field_value
from pages.controls.prediction import await_guess
from pages.controls.share.export import draw_page
from pages.controls.share.links import honour_link
from pages.controls.state.session import find_record
from views.core.component import view
from views.core.markdown import escape_markdown
from views.generate.availability import two_readings
from views.generate.generate import page_payload
from views.generate.questions import GENERATE as QUESTIONS
from views.generate.session import GenerationContext

MENU = {"title": "Generate", "address": "generate", "place": 3, "opens": True}

ABOVE = {"beam": draw_beam, "temperature": draw_temperature, "prompting": draw_prompting, "surprise": draw_surprise}
BELOW = {"cache": draw_cache}
picture = view("generate", events=("interrupt", "link", "branch", "look", "open", "measured", "keep"))


def mount(writing: GenerationContext, place: DeltaGenerator, payload: bytes) -> None:
    with place:
        picture(payload, key=PICTURE, on={**events(writing), "keep": partial(keep_turn, writing)})


honour_link(GENERATE.rules)
here = GENERATE.open()
name, checkpoint, prompt, call, fields = prompt_controls(here)
session = find_record(WritingRecord)
tab = open_tab(here, prompt)
with st.container():  # empty on other tabs: the picture below keeps its place, and so what it is at
    how = settings(here, checkpoint, tab)
    if apart := two_readings(prompt, how.most):
        st.caption(escape_markdown(apart))
writing = GenerationContext(name, checkpoint, prompt, call, how, session.live, session.measured, fields)
await_guess(writing.digest)
above, middle, below = st.container(), st.container(), st.container()
shown = TabContent()
with above:
    if tab in ABOVE:
        shown = ABOVE[tab](here, writing)
with below:
    if tab in BELOW:
        shown = BELOW[tab](writing)
export, in_file = writing_export(here, writing, tab, shown)
ids, at = branch_of(writing)
notes = {**tab_notes(writing, tab, shown), "branch": {"ids": ids, "at": at}, "looked": session.surprise_token}
notes["talks"] = is_conversation(checkpoint, field_value)
if shown.python is None:  # else the panel of the charts has it all
    notes["take"] = export.header
draw_page(export, page_payload(writing, notes), partial(mount, writing, middle), (QUESTIONS, writing), in_file=in_file)
with above if shown.python else below:  # below what the component offers of itself
    if shown.charts:
        share_charts(here, writing, tab, shown)
shown.work()
