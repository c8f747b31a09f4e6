"""A text too long to be drawn whole, on the page about attention: its view, and the edits that it is run with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import streamlit as st

from engine.edits import Edit
from engine.experiment import Experiment
from engine.library import LongRun
from engine.limits import MAX_TOKENS
from pages.controls.experiment import (
    PANEL,
    change,
    current,
    experiment_panel,
    finite,
    fitting,
    notes,
)
from pages.controls.subject import Subject, look, notice
from pages.controls.take_long import TakingLong
from views.attention_long import Long, answered_long, attention_long, glanced
from views.component import courier, view
from views.experiment import panel
from views.walkthrough import Lane

UNCOMPARED = f"The maps show the edited run; before and after are compared in texts of at most {MAX_TOKENS} tokens."
UNPAINTED = f"Masks are painted on texts of at most {MAX_TOKENS} tokens; shorten the text to paint one."

picture = view("attention_long")


def is_long(lanes: Sequence[Lane]) -> bool:
    """Whether a page cannot draw every weight."""
    return max(len(lane.pieces) for lane in lanes) > MAX_TOKENS


def long_text(subject: Subject, lanes: Sequence[Lane], controls: Sequence[Edit]) -> None:
    """Draws all heads as overviews and one in tiles; `controls` are the edits that the page's own controls make."""
    made = current()
    long, unfit = edited(subject, lanes, controls, made)
    drawn = panel(made, subject.checkpoint, long.trace, lanes, unfit=unfit, notes=notes(made, long.looked.digest))
    with st.container(key="experiment panel", gap=None):
        experiment_panel(drawn, key=PANEL, on={"change": change})
    said = [notice(subject), UNCOMPARED if any(entry.on for entry in made.entries) else ""]
    taking = TakingLong("Attention", "attention", subject, long.trace, lanes, ("attention", "what if"), long)
    about = {"notice": " ".join(filter(None, said)), "take": taking.header}
    drawn = attention_long(long, name=subject.name, look=look(), notes=about)
    picture(drawn, key="attention long view")
    courier("courier", taking.answering(drawn, answering(long)))


def answering(long: Long) -> Callable[[dict[str, Any]], bytes]:
    def answer(query: dict[str, Any]) -> bytes:
        if "painted" in query:
            raise ValueError(UNPAINTED)
        return answered_long(long, query)

    return answer


def edited(
    subject: Subject, lanes: Sequence[Lane], controls: Sequence[Edit], made: Experiment
) -> tuple[Long, dict[int, str]]:
    """The run under the edits that are on and fit, and by its number why another does not."""
    read = subject.reading

    def run(edits: Sequence[Edit]) -> Long:
        long = LongRun(subject.checkpoint.model, read.read, tuple(edits), read.target)
        found = glanced(subject.name, subject.checkpoint, lanes, long, look())
        finite(found.trace)
        return found

    return fitting(made, controls, run, lambda: run(controls))
