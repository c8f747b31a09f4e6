"""Attention: every head of one run, one of them from all sides."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from engine.analysis.heads import most_telling_head
from pages.controls.model_input.model_input import Subject, look
from pages.controls.model_input.notice import notice
from pages.controls.run_page import PicturePage, state_of
from pages.controls.share.export import ROOM, Export
from pages.controls.state.page_state import Here
from views.attention.attention import TABLE, attention
from views.attention.charts import CHARTS
from views.attention.long import LongContext, attention_long
from views.attention.long_questions import ATTENTION, carry_long
from views.core.component import plotly_address, view
from views.core.lanes import Lane, measure_heads
from views.core.questions import Query
from views.core.run_context import Run

MENU = {"title": "Attention", "address": "attention", "place": 2, "opens": True}

picture = view("attention")


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


def look_at_first(run: Run) -> dict[str, int]:
    """Selection to begin with: what the example is there for; on a person's own text the head that says most about
    it."""
    if found := look():
        return found
    source, shown = run.lanes[0], run.lanes[-1]
    crosses = source is not shown
    layer, head = most_telling_head(run.trace, source.special, shown.side, crosses)
    return {"layer": layer, "head": head}


class AttentionPage(PicturePage):
    title, state, registry, charts = "Attention", state_of("attention"), ATTENTION, CHARTS
    long = True
    hears = "crossing"

    def export_options(self, run: Run) -> dict[str, Any]:
        """Options of the export: what a file of the page carries, and what can be downloaded."""
        if isinstance(run, LongContext):
            return {"carry": partial(carry_long, run), "room": ROOM}
        return {"tables": tables_of(run.lanes)}

    def payload(self, here: Here, subject: Subject, run: Run, export: Export) -> bytes:
        """The payload: every weight of every head; of a long text all heads as overviews, one in tiles."""
        about = {"notice": notice(subject, run), "take": export.header, "plotly": plotly_address()}
        if isinstance(run, LongContext):
            return attention_long(run, name=subject.name, look=look(), notes=about)
        return attention(
            run.trace,
            run.lanes,
            name=subject.name,
            scores={kind: vars(scores) for kind, scores in measure_heads(run.trace, run.lanes).items()},
            table=TABLE,
            notes={**about, "look": look_at_first(run)},
            picture=subject.reading.picture,
            before=run.before,
        )

    def mount(self, payload: bytes) -> None:
        picture(payload, key="attention view")


AttentionPage().show()
