"""Linear probes: what can be read off the residual stream, against a control task, and whether the model uses it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from engine.analysis.linear_probes import LENGTH, OF_FILE, probing_of, read_labelled, removing_of
from engine.analysis.token_label import label_kinds
from engine.budget import budget
from engine.data.table import read_table
from engine.edits.experiment import Entry, Experiment
from engine.inputs.corpus import Corpus
from engine.plurals import count_words
from pages.controls.compare.defaults import link_edits
from pages.controls.corpus import PARAMETERS, choose_corpus
from pages.controls.model_input.model_input import Subject, looked_at
from pages.controls.run_page import RunPage, state_of
from pages.controls.share.measure import measure_steps
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Choice, Text
from pages.controls.state.session import widget_value
from pages.controls.train.user_data import find_file, guess_columns
from pages.controls.what_if.experiment_link import linkable
from views.core.markdown import escape_markdown
from views.core.run_context import Run
from views.probes.charts import CHARTS
from views.probes.questions import PROBES, ProbeContext

MENU = {"title": "Linear probes", "address": "probes", "place": 6, "opens": True}

LABELS = {name: kind.title for name, kind in label_kinds().items()} | {OF_FILE: "labels of a file"}
LABEL = Choice(
    "label", next(iter(LABELS)), LABELS, label="label", hidden_as="the label of a probe",
    help="What a probe learns to read at each token, or, of a file with a column of labels, at the last token of each "
    "text.",
)  # fmt: skip
LABEL_COLUMN = Text("label_column", "", READABLE, label="labels in")


def choose_label(here: Here, corpus: Corpus | None, column: str) -> tuple[str, Corpus | None]:
    """The label, and the texts, with labels of their own where that is of the file."""
    file = find_file(here["corpus"]) if corpus else None
    table = read_table(file) if file and file.suffix.lower() != ".txt" else None
    others = [one for one in table.columns if one != column] if table else []
    if not others:
        here.adjust("label", options={name: title for name, title in LABELS.items() if name != OF_FILE})
    label = here.segments("label")
    if label != OF_FILE or table is None or file is None:
        here.leave_out("label_column")
        return label, corpus
    here.set_defaults(label_column=guess_columns(table, ("label",)).get("label", others[-1]))
    try:
        return label, read_labelled(file, column, here.menu("label_column", others, width=176))
    except ValueError as error:
        st.warning(escape_markdown(error))
        return label, corpus


def tell_layers(run: ProbeContext) -> None:
    """Says where the probe is best set against its control, and what both have right there."""
    found, learned, held = run.probes, *run.probes.rows
    layer = int(found.selectivity.argmax())
    accuracy, control, selectivity = (float(one[layer]) for one in (found.accuracy, found.control, found.selectivity))
    names = escape_markdown(", ".join(f"“{name}”" for name in found.classes))
    st.caption(
        f"{names}: learned at {count_words(learned, 'position')}, measured at {held:,} of texts held out, of "
        f"{count_words(found.texts, 'text')} with at most {count_words(LENGTH, 'token')} each; the first is not read."
    )
    st.markdown(
        f"Most selective: **{escape_markdown(run.streams[layer])}**, where the probe has **{accuracy:.1%}** right, its "
        f"control {control:.1%} and the most frequent class {found.majority:.1%}: a selectivity of "
        f"**{selectivity:+.3f}**."
    )
    if selectivity <= 0:
        st.markdown("No probe is better than its control: it may know no more than which token is which.")
    elif accuracy <= found.majority:
        st.markdown("The probe is no better there than naming the most frequent class.")


def tell_removal(run: ProbeContext, layer: int) -> None:
    """Measures the removal of the direction at a layer, and says how it compares with random ones."""
    work = removing_of(run.checkpoint, run.label, layer, run.corpus)
    if work.steps:
        measure_steps("removal", (subject_of(run), layer), work.steps)
    found = work.results
    own, random = float(found.kl[found.names.index("probe")]), found.kl[found.of_random]
    low, high = float(random.min()), float(random.max())
    says = "more than without any of them"
    if own <= high:
        says = "no more than without one of them: nothing shows that the model uses what the probe reads there"
    st.markdown(
        f"Without the probe’s direction {escape_markdown(run.streams[layer])}, predictions on "
        f"{count_words(found.texts, 'text')} held out move by **{own:.4f}** nats a position (KL), and by {low:.4f} to "
        f"{high:.4f} without one of {count_words(len(random), 'direction')} at random: {says}."
    )
    if found.plain == found.plain:  # else the model predicts no next token
        change = found.loss - found.plain
        own, random = float(change[found.names.index("probe")]), change[found.of_random]
        st.markdown(
            f"Its loss, {found.plain:.4f} nats a token there, changes by **{own:+.4f}**, and by "
            f"{float(random.min()):+.4f} to {float(random.max()):+.4f} without those at random."
        )
    address = compare_address(run, layer)
    if address:
        link = escape_markdown(urlencode(address))
        st.markdown(f"[Compare with the run of this text without it](compare?{link})", width="content")


def compare_address(run: ProbeContext, layer: int) -> dict[str, str]:
    """Address of a comparison of the page's run, A, with the same without the direction, B; empty where no address
    holds it."""
    edit, edits = run.probes.project_out(layer), run.trace.edits
    short = replace(edit, direction=[round(one, 5) for one in edit.direction], value=round(edit.value, 5))
    both = tuple(Experiment(tuple(map(Entry, some))) for some in (edits, (*edits, short)))
    if len(edits) >= budget.max_edits or widget_value("upload") or not linkable(both[1]):
        return {}
    return link_edits(run.model_name, looked_at()[1], both)


def subject_of(run: ProbeContext) -> tuple[str, ...]:
    return run.model_name, run.label, run.corpus.digest if run.corpus else ""


class LinearProbes(RunPage):
    title, registry, charts = "Linear probes", PROBES, CHARTS
    state = state_of("probes", LABEL, LABEL_COLUMN, *PARAMETERS)
    linked = ("attention", "what if", "label", "label_column", "corpus", "text_column")
    about = "probe"

    def extend(self, here: Here, subject: Subject, run: Run) -> Run:
        corpus, column = choose_corpus(here)
        label, corpus = choose_label(here, corpus, column)
        return ProbeContext(**vars(run), corpus=corpus, column=column, label=label, label_column=here["label_column"])

    def check(self, run: Run) -> None:
        """Fits the probes."""
        assert isinstance(run, ProbeContext)
        work = probing_of(run.checkpoint, run.label, run.corpus)
        if work.steps:
            measure_steps("probes", subject_of(run), work.steps)

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        assert isinstance(run, ProbeContext)
        tell_layers(run)
        if len(run.probes.classes) == 2:
            tell_removal(run, chosen["layer"])


LinearProbes().show()
