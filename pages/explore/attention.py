"""Attention: every head of one run, one of them from all sides."""

from dataclasses import asdict

import streamlit as st

from engine.analysis.heads import CROSS_SCORES, SCORES
from engine.edits import AttentionTemperature, Edit
from engine.runtime.limits import LONG_TOKENS
from pages.controls.attention.long_text import is_long, long_text
from pages.controls.model_input.model_input import Subject, look, notice, subject
from pages.controls.share.export import Export
from pages.controls.share.links import honour_link
from pages.controls.share.question_chart import offer_charts
from pages.controls.share.run_export import run_context, run_export
from pages.controls.what_if.experiment import what_if
from views.attention.attention import attention
from views.attention.charts import CHARTS
from views.attention.questions import ATTENTION
from views.core.component import courier, plotly_address, view
from views.core.lanes import Lane, lanes, measure_heads
from views.core.questions import Page, Query
from views.core.run_context import RUN
from views.what_if.questions import WHAT_IF

MENU = {"title": "Attention", "address": "attention", "place": 2, "opens": True}

picture = view("attention")
TABLE = [asdict(score) | {"focus": "attn"} for score in SCORES]
TABLE += [asdict(score) | {"focus": "cross_attn"} for score in CROSS_SCORES]


def temperature() -> None:
    st.slider(
        "attention temperature", 0.1, 4.0, 1.0, 0.05, key="attention", bind="query-params", width=165,
        help="Divides the scores inside every head before its softmax: low makes attention sharp, high makes it even. "
        "1 is the model as it was trained.",
    )  # fmt: skip


def tables_of(stacks: list[Lane]) -> dict[str, Query]:
    """Questions whose answers can be downloaded in place of what is looked at, by title."""
    found: dict[str, Query] = {"": {}}
    for stack in stacks:
        for focus, kind in (("attn", "self"), ("cross_attn", "cross"))[: 2 if stack.config.encoder else 1]:
            where = f", {stack.side} {kind}" if stack.side else ""
            for ask in ("patterns", "head_scores"):
                title = f"{ask.removeprefix('head_')} of all heads{where}"
                found[title] = {"ask": ask, "side": stack.side, "focus": focus}
    return found


def whole_text(subject: Subject, stacks: list[Lane], controls: list[Edit]) -> tuple[bytes, Page, Export]:
    """Payload (every weight of every head), answers and export of the page; draws what edits changed.

    `controls` are the edits that the page's own controls make.
    """
    conducted = what_if(subject, controls)
    trace = conducted.trace
    run = run_context(subject, trace, stacks, conducted.before)
    export = run_export("Attention", "attention", subject, run, ("attention", "what if"), tables=tables_of(stacks))
    drawn = attention(
        trace,
        stacks,
        name=subject.name,
        scores={name: vars(measured) for name, measured in measure_heads(trace, stacks).items()},
        table=TABLE,
        notes={
            "notice": notice(subject),
            "look": {"layer": 0, "head": 0, **look()},
            "take": export.header,
            "plotly": plotly_address(),
        },
        picture=subject.reading.picture,
        before=conducted.before,
    )
    answers = export.answers(drawn, (RUN, run), (ATTENTION, run))
    return drawn, answers.with_registry(WHAT_IF, conducted), export


honour_link()
looked_at = subject(temperature, LONG_TOKENS)
edits: list[Edit] = [] if st.session_state.attention == 1 else [AttentionTemperature(st.session_state.attention)]
stacks = lanes(looked_at.checkpoint, looked_at.reading)
long = is_long(stacks)
payload, page, export = (long_text if long else whole_text)(looked_at, stacks, edits)
picture(payload, key="attention view")
courier("courier", page.answer)
if CHARTS and not long:
    offer_charts(page, CHARTS, export.header, side=stacks[-1].side)
