"""Quantisation: which matrix did it, of a model whose weights take a few bits each."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from engine.analysis.logit_lens import check_lens
from engine.analysis.quantisation import join_distances, text_distance
from engine.edits import QuantiseMaps
from engine.edits.quantise import WRITTEN
from engine.inputs.samples import samples
from engine.model.quantised import SCHEMES
from engine.plurals import count_words
from engine.runtime import library
from pages.controls.interventions.leads import add_edit, compare_runs
from pages.controls.model_input.model_input import Subject
from pages.controls.run_page import RunPage, state_of
from pages.controls.share.links import address_now
from pages.controls.share.measure import take_steps
from pages.controls.state.history import READABLE
from pages.controls.state.page_state import Here
from pages.controls.state.parameter import Choice, Text
from pages.controls.what_if.experiment_link import to_link
from views.core.markdown import Markdown, escape_markdown
from views.core.run_context import Run, RunContext
from views.quantisation.charts import CHARTS
from views.quantisation.questions import QUANTISATION, QuantisationContext, found_exchange, plain_metric

MENU = {"title": "Quantisation", "address": "quantisation", "place": 8, "opens": True}

OTHER = "other"
SCHEME = Choice(
    "scheme", "Q4_0",
    {name: f"{name}, {SCHEMES[name].bits:g} bits" for name in WRITTEN} | {OTHER: "another model’s weights"},
    label="matrices exchanged for", hidden_as="what matrices are exchanged for",
    help="What a scheme of llama.cpp leaves of each matrix, rounded to the nearest, or the matrices of another model "
    "of the same shape: a GGUF file of this one, say, or a later step of its training.",
)  # fmt: skip
SISTER = Text("sister", "", READABLE, label="the other model", hidden_as="the other model")
TEXTS, LENGTH = 16, 64  # that the distance is measured on, tokens of each at most
SURE = (0.5, 0.9, 0.99)


def choose_exchange(here: Here, run: RunContext) -> QuantisationContext:
    """Chooses what matrices are exchanged for, by the controls that this draws. Raises ValueError, with a sentence."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="exchanged for"):
        scheme = here.menu("scheme", width=260)
        if scheme != OTHER:
            here.leave_out("sister")
            return QuantisationContext(**vars(run), scheme=scheme)
        named = here.text("sister", placeholder="its name, or hub:org/name", width=360).strip()
    if not named:
        raise ValueError("Type the name of the other model, as the box for models has it; open it there first.")
    try:
        other = library.checkpoint(named)
    except (ValueError, OSError) as error:
        raise ValueError(f"{named} does not open: {error}") from None
    return QuantisationContext(**vars(run), scheme="", other=other, named=named)


def tell_whole(run: QuantisationContext, row: int, candidate: int, against: int | None) -> None:
    """Says what all exchanges do together, what the sum of each by itself is, and so what comes of their acting
    together."""
    asked = row, candidate, against
    whole = found_exchange(run, asked, (*run.changes,))
    plain = plain_metric(run, asked)
    parts = sum(found_exchange(run, asked, (name,)).measured - plain for name in run.changes)
    ids = [candidate] if against is None else [candidate, against]
    names = [f"“{escape_markdown(one)}”" for one in run.name_candidates(ids)]
    what = f"lead of {names[0]} over {names[1]}" if len(names) > 1 else f"logit of {names[0]}"
    change = whole.measured - plain
    st.markdown(
        f"With {escape_markdown(count_words(len(run.changes), 'matrix', 'matrices'))} exchanged the {what} goes from "
        f"**{plain:.4f}** to **{whole.measured:.4f}** ({change:+.4f}), and the prediction moves by **{whole.kl:.2e}** "
        f"nats (KL). One by one they sum to {parts:+.4f}; the rest, {change - parts:+.4f}, comes of their acting "
        "together."
    )


def tell_texts(run: QuantisationContext) -> None:
    """Says how far the predictions move over texts."""
    if run.trace.pictures or run.model.config.head.over_classes:
        return
    readings = run.cached("texts", lambda: list(samples(run.checkpoint, TEXTS, LENGTH)))

    def measure(number: int) -> Any:
        made = partial(text_distance, run.checkpoint, run.changes, readings[number])
        return run.cached(("text", number), made)

    take_steps("quantised texts", run.digest, [partial(measure, number) for number in range(len(readings))])
    found = join_distances([measure(number) for number in range(len(readings))])
    places = count_words(len(found.kl), "position")
    marks = ", ".join(f"{share:.0%}: {float(found.kl.quantile(share)):.2e}" for share in SURE)
    st.markdown(
        f"Over {escape_markdown(count_words(len(readings), 'text'))} of the shipped data, {escape_markdown(places)}: a "
        f"mean KL of **{float(found.kl.mean()):.2e}** nats ({escape_markdown(marks)}), and the same likeliest token at "
        f"**{100 * float(found.same.float().mean()):.2f} %** of them."
    )


def lead_on(run: QuantisationContext) -> None:
    """Links to the run with all matrices exchanged."""
    if run.other is not None:
        return
    edit = QuantiseMaps(run.scheme, list(run.changes))
    both = add_edit(run.trace.edits, edit)
    if both is not None:
        compare = escape_markdown(urlencode(compare_runs(run, run.trace, edit)))
        edited = escape_markdown(urlencode(address_now(edits=to_link(both[1]))))
        st.markdown(Markdown(f"[Compare both](compare?{compare}) · [Attention with it](attention?{edited})"))


class Quantisation(RunPage):
    title, registry, charts = "Quantisation", QUANTISATION, CHARTS
    state = state_of("quantisation", SCHEME, SISTER)
    linked = ("attention", "scheme", "sister", "what if")
    refused = ""  # why there is nothing to exchange

    def extend(self, here: Here, subject: Subject, run: Run) -> Run:
        assert isinstance(run, RunContext)
        try:
            check_lens(run.model.config)
            found = choose_exchange(here, run)
            len(found.changes)
            return found
        except ValueError as error:
            self.refused = str(error)
            return run

    def check(self, run: Run) -> None:
        if not isinstance(run, QuantisationContext):
            raise ValueError(self.refused)

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        assert isinstance(run, QuantisationContext)
        tell_whole(run, chosen["row"], chosen["candidate"], chosen["against"])
        tell_texts(run)
        lead_on(run)


Quantisation().show()
