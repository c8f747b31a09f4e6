"""A page about one run: what is around its picture and charts. Model and text, What if, link and export, answers.

class LogitLens(RunPage):
    title, state, registry, charts = "Logit lens", state_of("logit_lens"), LENS, CHARTS


LogitLens().show()
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import streamlit as st

from engine.budget import budget
from engine.edits import AttentionTemperature, Edit
from pages.controls.model_input.model_input import Subject, subject
from pages.controls.model_input.notice import cut_notice
from pages.controls.model_input.parameters import ATTENTION, INPUT, TALK
from pages.controls.model_input.sound import Part, draw_sound
from pages.controls.places import CHOSEN, LINKED, choose_arguments, pick_place
from pages.controls.prediction import await_guess
from pages.controls.share.export import Export, draw_page
from pages.controls.share.links import honour_link
from pages.controls.share.measure import measure_steps
from pages.controls.share.question_chart import Chart, show_question
from pages.controls.share.run_export import run_export
from pages.controls.state.page_state import Here, PageState
from pages.controls.state.parameter import Parameter
from pages.controls.what_if.experiment import what_if
from views.core.lanes import is_long, lanes
from views.core.markdown import escape_markdown
from views.core.questions import Context, Page, Question, Registry
from views.core.run_context import RUN, Run
from views.core.turns import turns
from views.what_if.questions import WHAT_IF

Charts = Mapping[str, tuple[str, Chart]]
Further = Sequence[tuple[Registry, Context]]  # what can be asked besides, which no file of the page holds


@cache
def state_of(page: str, *more: Parameter) -> PageState:
    """State of a page about one run, whose script asks for it with every run."""
    return PageState(page, *INPUT, *TALK, ATTENTION, *CHOSEN, *more)


def temperature_edits(here: Here) -> list[Edit]:
    """Edits that the temperature slider makes to a run."""
    temperature = here["attention"]
    return [] if temperature == 1 else [AttentionTemperature(temperature)]


@dataclass(frozen=True)
class PageRun:
    """A run on its page, which answers `questions` about it."""

    here: Here
    run: Run
    export: Export
    page: Page
    questions: Mapping[str, Question]

    def choose_shared(self, ask: str) -> dict[str, Any]:
        """The places that a question is about; what it takes steps to find is found."""
        question = self.questions[ask]
        chosen = choose_arguments(self.here, question.parameters, question.defaults, self.run, {})
        self.measure(self.here.state.page, question, chosen)
        return chosen

    def measure(self, key: str, question: Question, query: Mapping[str, Any]) -> None:
        if question.steps and (steps := question.steps(self.run, **question.bind(self.run, query))):
            measure_steps(key, tuple(query.items()), steps)

    def draw_chart(self, shared: Mapping[str, Any], heading: str, ask: str, chart: Chart) -> dict[str, Any]:
        """Draws a chart, which has a control for each parameter but those `shared`, whose places are chosen already;
        returns all places."""
        question, key = self.questions[ask], f"{self.here.state.page} {heading}"
        own = {name: kind for name, kind in question.parameters.items() if name not in shared}
        known = {name: value for name, value in shared.items() if name in question.parameters}
        chosen = known | choose_arguments(self.here, own, question.defaults, self.run, known)
        query = {"ask": ask, "trace": self.run.digest, **chosen}
        self.measure(key, question, query)
        kept = {one.name: str(chosen[one.name]) for one in LINKED if chosen.get(one.name) is not None}
        header = {**self.export.header, "link": {**self.export.header["link"], **kept}}
        pick = f"{key} {shared}", partial(pick_place, self.here, self.run, f"{key} {shared}")
        show_question(self.page, query, chart, title=heading, header=header, key=key, on_pick=pick)
        return {**shared, **chosen}


class RunPage:
    """Draws the page of its state, whose view is called like its address, with the questions of `registry`.

    `charts` are by their titles a question and its chart. `linked` are keys of the controls that a link holds. `about`
    is the question whose places all charts share, that of the first chart where it is "". With `long`, a text too long
    to be drawn whole is run in pieces, and has the charts of questions with steps, unless `extend` makes a run that
    holds what all read. One that `hears` draws of a model of sounds its frames and that part.
    """

    title: str
    state: PageState
    registry: Registry
    charts: Charts = MappingProxyType({})
    linked: Sequence[str] = ("attention", "what if")
    about = ""
    long = False
    hears: Part = ""

    @st.fragment  # what is around it stays as it is while a text is changed
    @turns.take()
    def show(self) -> None:
        honour_link(self.state.rules)
        here = self.state.open()
        looked_at, run, further = self.compute(here)
        run = self.extend(here, looked_at, run)
        export = run_export(self.title, here, looked_at, run, tuple(self.linked), **self.export_options(run))
        shown = PageRun(
            here, run, export, self.draw(here, looked_at, run, export, further), self.registry.questions_about(run)
        )
        whole = {title: one for title, one in self.charts.items() if run.whole or shown.questions[one[0]].steps}
        if whole:
            self.draw_charts(shown, whole)

    def compute(self, here: Here) -> tuple[Subject, Run, Further]:
        """Computes the input that a person looks at, and its run under their edits."""
        most = budget.long_tokens if self.long else budget.max_tokens
        looked_at = subject(here, self.draw_controls, most, bool(self.hears))
        if looked_at.checkpoint.config.embedding.sound is not None:
            draw_sound(looked_at.checkpoint, looked_at.reading, temperature_edits(here), self.hears)
            st.stop()
        whole = not self.long or not is_long(lanes(looked_at.checkpoint, looked_at.reading))
        run, edits = what_if(looked_at, temperature_edits(here), whole)
        if edits.before is edits.after:  # else what the edits did is guessed at
            await_guess(run.digest)
        return looked_at, run, [(WHAT_IF, edits)]

    def draw_controls(self, here: Here) -> None:
        """Draws the controls beside the text."""
        here.slider("attention", width=165)

    def extend(self, here: Here, subject: Subject, run: Run) -> Run:
        """The run with what the questions of the page are about besides."""
        return run

    def export_options(self, run: Run) -> Mapping[str, Any]:
        return {}

    def draw(self, here: Here, subject: Subject, run: Run, export: Export, further: Further) -> Page:
        if cut := cut_notice(subject):
            st.caption(escape_markdown(cut))
        return draw_page(export, b"", None, (RUN, run), (self.registry, run), unsaved=further)

    def draw_charts(self, shown: PageRun, charts: Charts) -> None:
        try:
            self.check(shown.run)
            chosen = shown.choose_shared(self.about or next(iter(charts.values()))[0])
            self.draw_findings(shown.run, chosen)
        except ValueError as error:
            st.warning(escape_markdown(error))
            return
        for heading, (ask, chart) in charts.items():
            st.markdown(f"**{escape_markdown(heading)}**")
            try:
                self.follow_chart(shown, ask, shown.draw_chart(chosen, heading, ask, chart))
            except ValueError as error:  # what this model, or what is chosen, has no answer to
                st.warning(escape_markdown(error))

    def follow_chart(self, shown: PageRun, ask: str, chosen: Mapping[str, Any]) -> None:
        """Says below the chart of a question, at the places `chosen`, where its answer leads."""

    def check(self, run: Run) -> None:
        """Raises ValueError, with a sentence, for a run that the page cannot show."""

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        """Says above the charts what is found at the places that they share. Raises ValueError where they cannot be
        drawn."""


class PicturePage(RunPage):
    """Page whose run is drawn by a view; its charts are drawn once somebody opens them."""

    @abstractmethod
    def payload(self, here: Here, subject: Subject, run: Run, export: Export) -> bytes:
        """Payload of the view."""

    @abstractmethod
    def mount(self, payload: bytes) -> Any: ...

    def draw(self, here: Here, subject: Subject, run: Run, export: Export, further: Further) -> Page:
        payload = self.payload(here, subject, run, export)
        return draw_page(export, payload, self.mount, (RUN, run), (self.registry, run), unsaved=further)

    def draw_charts(self, shown: PageRun, charts: Charts) -> None:
        section = st.expander("Charts over all layers", key="charts", on_change="rerun", icon=":material/bar_chart:")
        if not section.open:
            return
        with section:
            first = next(iter(charts))
            heading = st.selectbox("chart", list(charts), key="chart", width=420) if len(charts) > 1 else first
            shown.draw_chart({}, heading, *charts[heading])
