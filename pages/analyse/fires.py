"""What makes it fire: the texts in which a head, or a neuron of an MLP, is strongest, and what kind each head is."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

import streamlit as st

from engine.analysis.heads import SCORES
from engine.analysis.strongest import (
    CORPUS_LENGTH,
    CORPUS_TEXTS,
    KINDS,
    LENGTH,
    ORDERED,
    TEXTS,
    Measure,
    seconds_of_text,
    surveying_of,
)
from engine.plurals import count_words
from engine.tokenizers import Tokenizer
from engine.training.cluster.ray_kinds.survey import RaySurvey, on_cluster
from pages.controls.corpus import PARAMETERS, choose_corpus
from pages.controls.model_input.model_input import Subject, subject_alone
from pages.controls.run_page import Further, RunPage, state_of
from pages.controls.share.measure import measure_steps
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Choice
from pages.controls.what_if.experiment import run as run_subject
from views.core.markdown import Markdown, escape_markdown
from views.core.run_context import Run, RunContext
from views.why.fires import FIRES, FIRES_CHARTS, TITLES, CorpusContext, pieces_of, places

MENU = {"title": "What makes it fire", "address": "fires", "place": 4, "opens": True}

WALKTHROUGH = "pages/explore/walkthrough.py"
LINKED, SHOWN = 3, 120  # places that are links, characters of each
MEASURE = Choice(
    "measure",
    "written",
    {one: TITLES.get(one, "What it writes") for one in get_args(Measure)},
    label="a head is strong by",
    hidden_as="the measure of a head",
    help="What it writes: the length of what a head adds to the stream. Any other: the share of its attention at that "
    "position, as defined under the table of all heads.",
)


def survey_texts(run: CorpusContext) -> Markdown:
    """Surveys the texts; returns which were read, and how long each is at most, in words."""
    corpus, work = run.corpus, surveying_of(run.checkpoint, run.corpus, partial(on_cluster, run.model_name))
    one = "picture" if run.trace.pictures else "text"
    if corpus is None:
        count, read = TEXTS, f"{count_words(TEXTS, one)} of the shipped data"
    else:
        count, read = work.count, f"{count_words(len(corpus.texts), 'text')} of {corpus.name}"
        if count < len(corpus.texts):
            read = f"{count:,} of the {read} (of the first {CORPUS_TEXTS:,}, those that the model can read)"
    most = "" if run.trace.pictures else count_words(LENGTH if corpus is None else CORPUS_LENGTH, "token")
    if work.steps:
        said, wait = f"{escape_markdown(read)}{most and f', at most {most} of each'}", lambda part: ""
        if isinstance(work, RaySurvey):
            wait = work.wait
            if work.trouble:
                st.warning(escape_markdown(work.trouble))
            st.caption(f"{said}, computed {'here' if work.trouble else 'on a cluster of Ray'}.")
        else:
            each = run.cached(("seconds", corpus and corpus.digest), lambda: seconds_of_text(run.checkpoint, corpus))
            st.caption(
                f"{said}: about {each * count:.0f} s, for one takes {each:.2f} s, measured on the first {ORDERED}."
            )
        subject = run.model_name, corpus and corpus.digest
        measure_steps("survey", subject, work.steps, partial=True, wait=wait)
        read = f"the first {len(work.results.readings)} of these"
    return Markdown(f"{escape_markdown(read)}{most and f', of at most {most}'}")


def link_strongest(run: CorpusContext, tokenizer: Tokenizer, chosen: Mapping[str, Any]) -> None:
    found = places(run, chosen["side"], chosen["layer"], chosen["measure"], chosen["head"])
    for reading, pos, value in found[:LINKED]:
        piece = pieces_of(run, reading, chosen["side"])[pos]
        text = tokenizer.decode(list(reading.read.ids), special=False)  # type: ignore[union-attr]
        st.page_link(
            WALKTHROUGH,
            icon=":material/search:",
            query_params={"model": run.model_name, "text": text.strip()},
            label=escape_markdown(f"“{piece}”, {value:.2f}: {text.strip()[:SHOWN]}"),
        )


class Fires(RunPage):
    title, registry, charts = "What makes it fire", FIRES, FIRES_CHARTS
    state = state_of("fires", MEASURE, *PARAMETERS)
    linked = ("measure", "corpus", "text_column")

    def compute(self, here: Here) -> tuple[Subject, Run, Further]:
        """A model with texts of its own: no person's text, and no edits."""
        subject = subject_alone(here)
        return subject, run_subject(subject, ()), ()

    def extend(self, here: Here, subject: Subject, run: Run) -> CorpusContext:
        """The run with the texts that its model is surveyed on."""
        assert isinstance(run, RunContext)
        corpus, column = choose_corpus(here)
        return CorpusContext(**vars(run), corpus=corpus, column=column)

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        """Surveys the texts, and says what was read; leads to the strongest."""
        assert isinstance(run, CorpusContext)
        read = survey_texts(run)
        one, part = ("picture", "patch") if run.trace.pictures else ("text", "token")
        strength = "what it writes is long" if chosen["measure"] == "written" else "its share of attention is large"
        st.caption(
            f"Over {read}: a head is as strong as {strength}, a neuron as its "
            f"activation. The strongest {part} of each {one} stands in one column."
        )
        if not run.trace.pictures and run.checkpoint.tokenizer is not None:
            link_strongest(run, run.checkpoint.tokenizer, chosen)


Fires().show()
with st.expander("What the kinds of heads are"):
    st.markdown(
        "Each is the mean over the texts in which it is defined; the positional share over every "
        f"{ORDERED}th text, for it takes eight more runs. A frame marks the head that is most of a kind.\n\n"
        + "\n".join(
            f"- **{escape_markdown(score.title)}**: {escape_markdown(f'{score.definition} {score.source}.')}"
            for score in SCORES
            if score.key in KINDS
        )
    )
