"""Why this token: a logit as the sum of what every part of the model added to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, LiteralString
from urllib.parse import urlencode

import streamlit as st

from engine.analysis.attribution import silencer
from engine.analysis.logit_lens import check_lens
from engine.analysis.writers import Kind, Writer
from engine.budget import budget
from engine.edits.experiment import Entry, Experiment
from engine.plurals import count_words
from pages.controls.compare.defaults import link_edits
from pages.controls.model_input.model_input import Subject, looked_at
from pages.controls.run_page import RunPage, state_of
from pages.controls.share.links import address_now
from pages.controls.state.page_state import Here
from pages.controls.state.session import widget_value
from pages.controls.what_if.experiment_link import linkable
from views.attention.long import LongContext
from views.core.markdown import Markdown, escape_markdown
from views.core.run_context import Run, RunContext
from views.why.charts import TOKEN_CHARTS
from views.why.questions import (
    TOKEN,
    HeadAccount,
    LongTokenContext,
    find_account,
    found_attribution,
    hold_vectors,
    part_name,
    source_pieces,
)

MENU = {"title": "Why this token", "address": "why_token", "place": 1, "opens": True}

HEAD_PAGE = "pages/analyse/why_head.py"
# Stages of the Walkthrough in which a part that is no head stands.
STAGES: dict[Kind, str] = {
    "token": "embed",
    "patch": "patches",
    "segment": "segments",
    "position": "position",
    "within": "within",
    "MLP": "mlp",
}
NAMED = 4  # parts in a sentence
METHOD = (
    "Norms are held still at the scale of this run (Elhage et al. 2021), so that the parts add up exactly. A part "
    "is what it adds by itself; what later parts make of it counts as theirs, and is told apart without the head: "
    "directly and by norms, with all that later parts add held as it was; by later parts, when that goes too."
)


def tell_head(run: RunContext, account: HeadAccount, logit: float, name: LiteralString) -> None:
    """Draws a sentence on a head: where it looks, and what `logit` is without it."""
    pieces = source_pieces(run, account.head)
    looked, carried = escape_markdown(pieces[account.looked_at]), escape_markdown(pieces[account.carried])
    fell = logit - account.without
    split = {
        "directly": account.value,
        "by what norms divide by": account.by_norms,
        "by later parts": account.later,
    }
    test = ", ".join(f"{value:+.2f} {how}" for how, value in split.items())
    counts = "adds most" if account.value > 0 else "takes away most"
    st.markdown(
        f"Of the heads, **{part_name(account.head)}** {counts}, {account.value:+.2f}. It looks most at “{looked}” "
        f"({account.weight:.2f} of its attention), and the value of “{carried}” carries {account.carried_value:+.2f} "
        f"of that. Without this head, whose z is then 0, the {name} is "
        f"{account.without:.2f}. What it had from the head is {fell:+.2f}: {test}."
    )


def link_head(run: RunContext, account: HeadAccount, pos: int) -> None:
    """Draws links to a head's pattern, to the score with which it looked where it looked most, and to a comparison with
    the run without it."""
    head = account.head
    place: dict[str, Any] = {"layer": head.layer, "head": head.head, "pos": pos, "key": account.looked_at}
    if len(run.lanes) > 1:
        place |= {"side": run.lanes[-1].side, "focus": "cross_attn" if head.kind == "cross head" else "attn"}
    query = address_now(**{name: str(at) for name, at in place.items()})
    label = f"Why does {part_name(head)} look there?"
    shown: dict[str, Any] = {"layer": head.layer, "head": head.head, "query": pos, "key": account.looked_at}
    if len(run.lanes) > 1 and head.kind == "head":
        shown["focus"] = "attn"
    with st.container(horizontal=True, vertical_alignment="center"):
        if not isinstance(run, LongTokenContext):
            st.page_link(HEAD_PAGE, label=escape_markdown(label), icon=":material/search:", query_params=query)
        if compared := without_head(run, head):
            at: dict[str, Any] = {name: one for name, one in shown.items() if name in ("layer", "head", "focus")}
            label = Markdown(f"Compare with the run without {escape_markdown(part_name(head))}")
            st.markdown(link_to("compare", label, at, compared), width="content")
        st.markdown(link_to("attention", "See its pattern on Attention", shown), width="content")


def link_to(
    page: LiteralString,
    label: LiteralString | Markdown,
    place: Mapping[str, Any],
    query: Mapping[str, str] | None = None,
) -> Markdown:
    """Link to a place of the picture on another page, which stands behind the #; `query` None: this page's address."""
    asked, at = urlencode(address_now() if query is None else query), urlencode(place, safe="[]")
    told = label if isinstance(label, Markdown) else escape_markdown(label)
    return Markdown(f"[{told}]({page}?{escape_markdown(asked)}#{escape_markdown(at)})")


def without_head(run: RunContext, head: Writer) -> dict[str, str]:
    """Address of a comparison of the run, A, with the same without a head, B; empty where no address holds it."""
    edits = tuple(Entry(edit) for edit in run.trace.edits)
    both = Experiment(edits), Experiment((*edits, Entry(silencer(run.model, head))))
    if len(edits) >= budget.max_edits or not linkable(both[1]) or widget_value("upload"):
        return {}
    seed = {name: text for name, text in address_now().items() if name == "seed"}
    return link_edits(run.model_name, looked_at()[1], both) | seed


class WhyToken(RunPage):
    title, state, registry, charts = "Why this token", state_of("why_token"), TOKEN, TOKEN_CHARTS
    long = True

    def extend(self, here: Here, subject: Subject, run: Run) -> Run:
        return hold_vectors(run) if isinstance(run, LongContext) else run

    def check(self, run: Run) -> None:
        check_lens(run.model.config)

    def draw_findings(self, run: Run, chosen: Mapping[str, Any]) -> None:
        """Says in sentences what is in the charts: the parts that add most, one head and the test of it."""
        assert isinstance(run, RunContext)
        row, id, other = chosen["row"], chosen["candidate"], chosen["against"]
        found = found_attribution(run, row, id, other)
        ids = [id] if other is None else [id, other]
        name, *against = (f"“{escape_markdown(one)}”" for one in run.name_candidates(ids))
        asked = f"lead of {name} over {against[0]}" if against else f"logit of {name}"
        first = sorted(found.values.items(), key=lambda part: -abs(part[1]))[:NAMED]
        parts = "; ".join(f"{escape_markdown(part_name(part))} {value:+.2f}" for part, value in first)
        count = count_words(len(found.values), "part")
        st.markdown(f"The {asked} is **{found.logit:.2f}**, the sum of {count}. The largest: {parts}.")
        pos, largest = next(iter(found.covectors)), first[0][0]
        if largest.kind in STAGES and not isinstance(run, LongTokenContext):  # the Walkthrough draws no long text
            place: dict[str, Any] = {"layer": largest.layer or 0, "row": pos, "open": f'["{STAGES[largest.kind]}"]'}
            st.markdown(link_to("walkthrough", f"See {part_name(largest)} on the Walkthrough", place))
        cap = run.model.config.head.softcap
        if cap is not None:
            st.caption(f"The model caps it afterwards: {cap:g} · tanh(sum / {cap:g}).")
        if (account := find_account(run, row, id, other)) is not None:
            tell_head(run, account, found.logit, "lead" if against else "logit")
            link_head(run, account, pos)
            st.caption(METHOD)


WhyToken().show()
