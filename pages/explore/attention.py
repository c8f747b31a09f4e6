"""Attention: every head of one run, one of them from all sides."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from engine.analysis.heads import CROSS_SCORES, SCORES
from pages.controls.attention.long_text import long_text
from pages.controls.model_input.model_input import Subject, look, notice
from pages.controls.run_page import run_page
from pages.controls.share.export import Export
from views.attention.attention import attention
from views.attention.charts import CHARTS
from views.attention.long_questions import ATTENTION
from views.core.component import plotly_address, view
from views.core.lanes import Lane, measure_heads
from views.core.questions import Query
from views.core.run_context import RunContext

MENU = {"title": "Attention", "address": "attention", "place": 2, "opens": True}

picture = view("attention")
TABLE = [asdict(score) | {"focus": "attn"} for score in SCORES]
TABLE += [asdict(score) | {"focus": "cross_attn"} for score in CROSS_SCORES]


def tables_of(stacks: Sequence[Lane]) -> dict[str, Query]:
    """Questions whose answers can be downloaded in place of what is looked at, by title."""
    found: dict[str, Query] = {"": {}}
    for stack in stacks:
        for focus, kind in (("attn", "self"), ("cross_attn", "cross"))[: 2 if stack.config.encoder else 1]:
            where = f", {stack.side} {kind}" if stack.side else ""
            for ask in ("patterns", "head_scores"):
                title = f"{ask.removeprefix('head_')} of all heads{where}"
                found[title] = {"ask": ask, "side": stack.side, "focus": focus}
    return found


def draw(subject: Subject, run: RunContext, export: Export) -> bytes:
    """The payload of a text that is drawn whole: every weight of every head."""
    return attention(
        run.trace,
        run.lanes,
        name=subject.name,
        scores={kind: vars(scores) for kind, scores in measure_heads(run.trace, run.lanes).items()},
        table=TABLE,
        notes={
            "notice": notice(subject),
            "look": {"layer": 0, "head": 0, **look()},
            "take": export.header,
            "plotly": plotly_address(),
        },
        picture=subject.reading.picture,
        before=run.before,
    )


run_page(
    "Attention", "attention", ATTENTION, charts=CHARTS, draw=draw, mount=partial(picture, key="attention view"),
    long=long_text, tables=tables_of,
)  # fmt: skip
