"""The home page: the picture of the Walkthrough for a text of the reader's, and three doors."""

from __future__ import annotations

from dataclasses import replace
from typing import LiteralString

import streamlit as st

from engine.generation.sampling import Sampling
from engine.inputs.readers import Reading, read_text
from engine.runtime import library
from engine.tokenizers.encoding import Encoding
from pages.controls.learn.course import COURSE, address, done, lessons, use_keys
from pages.controls.learn.fields import read_field, read_words
from pages.controls.model_input.model_input import EXAMPLES
from pages.controls.words import language
from pages.controls.words import translate as _
from server.settings import FIRST_MODEL
from views.core.component import courier, view
from views.core.lanes import lanes, measure_heads
from views.core.questions import Page
from views.core.run_context import RUN, RunContext
from views.walkthrough.outcome import first_row, outcome_of
from views.walkthrough.questions import WALKTHROUGH, WalkthroughContext
from views.walkthrough.walkthrough import walkthrough

EXPLORE, OPEN = "pages/explore/walkthrough.py", "pages/inspect/checkpoint.py"
OWN = ("lang", "done")  # of this page's address; with anything else "/" is an older link to the Walkthrough
LONGEST, MOST = 90, 24  # characters and tokens of a text that fits the small picture

picture, older_link = view("walkthrough"), view("learn/older_link")


def draw_home() -> None:
    if any(key not in OWN for key in st.query_params):
        older_link({}, key="older link")
        st.stop()
    language()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        st.markdown(
            "## "
            + _("Look inside a transformer")
            + "\n"
            + _("Type a few words: every number below is computed from them, by a real model, now."),
            width="stretch",
        )
    doors = st.container(key="home-doors")
    text = read_field("home-text", _("text"), str(EXAMPLES[FIRST_MODEL]["text"]), read_words(LONGEST))
    with doors:
        draw_doors(text)
    draw_start(text)
    with st.container(key="home-picture"):
        draw_run(text)
    use_keys(None, None)  # the browser knows how far the reader is


def draw_start(text: str) -> None:
    """Says what to look at first in the picture, and leads to the first lesson."""
    reading: Reading = read_text(library.checkpoint(FIRST_MODEL), text, MOST)
    trace, look = library.traces.trace(FIRST_MODEL, reading.read), EXAMPLES[FIRST_MODEL]["look"]
    shares = trace[f"blocks.{look['layer']}.attn.pattern"][0, look["head"], -1]
    most = int(shares.argmax())
    assert isinstance(reading.read, Encoding)
    pieces = reading.read.pieces
    first = lessons()[0]
    sentence = _(
        "Start here: the darkest cell in the last row of the pattern. “{last}” gives {share:.1%} of its attention to "
        "“{most}”, in block {block}, head {head}."
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="home-start"):
        said = sentence.format(
            last=pieces[-1].strip(),
            most=pieces[most].strip(),
            share=float(shares[most]),
            block=look["layer"] + 1,
            head=look["head"] + 1,
        )
        st.markdown(f":small[{said}]", width="stretch")
        st.page_link(
            COURSE,
            label=_("First lesson: {title}").format(title=first.title),
            icon=":material/play_circle:",
            query_params=address(first.name),
        )


def draw_run(text: str) -> None:
    """The Walkthrough of a text, as the page itself draws it; what it asks for is answered here too."""
    checkpoint = library.checkpoint(FIRST_MODEL)
    reading: Reading = read_text(checkpoint, text, MOST)
    stacks = lanes(checkpoint, reading)
    trace = library.traces.trace(FIRST_MODEL, reading.read)
    run = RunContext(FIRST_MODEL, checkpoint, trace, stacks)
    sampling = Sampling()
    outcome = outcome_of(checkpoint, trace, reading, sampling, text=text)
    if outcome is not None:
        outcome = replace(outcome, sampled=None)  # nothing is appended here
    context = WalkthroughContext(**vars(run), outcome=outcome, sampling=sampling)
    notes = {
        "notice": "",
        "full": True,
        "look": EXAMPLES[FIRST_MODEL]["look"],
        "row0": first_row(checkpoint, reading, outcome, 0),
        "attention_temperature": 1.0,
        "take": None,
        "sampling": {"temperature": 1.0, "top_k": 0, "top_p": 1.0},
    }
    scores = measure_heads(trace, stacks)
    payload = walkthrough(
        trace, stacks, name=FIRST_MODEL, outcome=outcome, scores=scores, picture=None, original=None, notes=notes
    )
    picture(payload, key="home walkthrough")
    courier("courier", Page((RUN, run), (WALKTHROUGH, context)).answer)


def draw_doors(text: str) -> None:
    course = lessons()
    finished = done()
    following = next((lesson for lesson in course if lesson.name not in finished), course[0])
    learn, explore, own = st.columns(3, gap="small", border=True)
    with learn:
        st.page_link(
            COURSE,
            label=bold(_("Learn")),
            icon=":material/school:",
            width="stretch",
            query_params=address(following.name),
        )
        st.caption(
            _("{count} lessons from text to attention, each an experiment. Next: {title}.").format(
                count=len(course), title=following.title
            )
        )
    with explore:
        st.page_link(
            EXPLORE,
            label=bold(_("Explore")),
            icon=":material/search:",
            width="stretch",
            query_params={"model": FIRST_MODEL, "text": text},
        )
        st.caption(_("This text in full: change the mask, a head, a position, and see what follows."))
    with own:
        st.page_link(OPEN, label=bold(_("Open your model")), icon=":material/folder_open:", width="stretch")
        st.caption(_("GPT-2, BERT, T5, LLaMA and others: a folder, an upload or the hub, every weight accounted for."))


def bold(label: LiteralString) -> LiteralString:
    return f"**{label}**"
