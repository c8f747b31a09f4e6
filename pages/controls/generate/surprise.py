"""The tab Surprise: which text is measured, and its surprise along the text as a chart."""

from __future__ import annotations

import math
from typing import cast

import pandas as pd
import streamlit as st

from pages.controls.generate.tabs import TabContent, WritingRecord, branch_of
from pages.controls.state.page_state import Here
from pages.controls.state.session import find_record, read_selection
from views.charts.show import NamedChart
from views.generate.charts import surprise_chart, surprise_frame
from views.generate.session import GenerationContext
from views.generate.surprise import Stride, measurement, pseudo, token_frame


def draw_surprise(here: Here, writing: GenerationContext) -> TabContent:
    """Draws what chooses the text; `header` says which it is."""
    reads = "written"
    stride: Stride = "half"
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if branch_of(writing)[0]:
            reads = here.segments("surprise")
        if not writing.prompt.fits:
            stride = cast(Stride, here.segments("surprise_stride"))
    ids = () if reads == "prompt" else branch_of(writing)[0]
    count = charted_steps(writing, ids, stride)
    charts = [draw_curve(writing, ids, stride, count)] if count else []
    return TabContent(charts=charts, header={"surprise": {"reads": reads, "stride": stride, "charted": count}})


def charted_steps(writing: GenerationContext, ids: tuple[int, ...], stride: Stride) -> int:
    """Number of steps of the measurement the chart shows: a single step is measured at once, others as far as the
    component has asked for them."""
    measuring = measurement(writing, ids, stride)
    if len(measuring.steps) == 1:
        measuring.between(0, 1)
    return measuring.count


def draw_curve(writing: GenerationContext, ids: tuple[int, ...], stride: Stride, count: int) -> NamedChart:
    """The chart of the first `count` steps of a measurement. A click on a bar looks at its token."""
    measuring = measurement(writing, ids, stride)
    tokens = token_frame(writing, measuring.between(0, count))
    opens = [one.asked for one in measuring.windows[1:]]
    looked = find_record(WritingRecord).surprise_token
    at = looked if looked is not None and looked < len(tokens) else int(tokens["surprise"].idxmax())
    bits = math.log2(writing.checkpoint.config.outputs)
    line = "at each masked token" if pseudo(writing) else "before each token"
    st.caption(f"Bars: surprise in bits; line: the entropy {line}, which is the surprise to be expected.")

    def look() -> None:
        if picked := read_selection(key, "token"):
            find_record(WritingRecord).surprise_token = int(picked[0]["index"])

    key = f"surprise curve {hash((writing.digest, ids, stride))}"
    data = {"tokens": surprise_frame(tokens, at), "windows": pd.DataFrame({"position": [one - 0.5 for one in opens]})}
    chart = NamedChart(surprise_chart, (bits,), data)
    chart.show(key, on_select=look)
    return chart
