"""What a class said at a step as a picture, and the page of a step in a frame: for teacher and projector."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from pages.controls.classes.kind import kind_of
from pages.controls.classes.who import entry_of
from server.classes.steps import Step
from server.classes.store import Room, check_look
from views.charts.show import show_altair
from views.classes.tally import Content, list_questions

FRAME = 720  # CSS pixels of a page


def page_address(page: str, query: dict[str, str]) -> str:
    head = (st.context.url or "http://localhost/").partition("?")[0].partition("#")[0].rpartition("/")[0]
    return f"{head}/{page}?{urlencode(query, safe=',')}"


def show_page(step: Step) -> None:
    """The page of a step, as everybody sees it."""
    if (entry := entry_of(step.page)) is None:
        return
    address = page_address(entry.address, {**step.query, "embed": "true"})
    st.iframe(f"{address}{check_look(step.looked)}", height=FRAME, alt=step.sentence or entry.title)


def draw_chart(room: Room, found: Sequence[Content]) -> None:
    """The tally of a step as a picture, where its kind has one."""
    chart = kind_of(room.step).chart
    if chart is not None and found:
        graded = room.revealed and any(one["right"] is not None for one in found)
        show_altair(partial(chart, found, graded), key="class tally")
    if rows := list_questions(found):
        st.dataframe(pd.DataFrame(rows), hide_index=True)
