"""The tab Temperature: softmax of numbers and of the model's logits, at the temperature of each chart's slider."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
import torch

from engine.plurals import count_words
from pages.controls.generate.parameters import GENERATE
from pages.controls.generate.tabs import TabContent, branch_of
from pages.controls.state.page_state import Here
from views.charts.show import NamedChart
from views.core.markdown import code_markdown, escape_markdown
from views.generate.availability import why_no_logits
from views.generate.charts import named_apart, temperature_chart
from views.generate.codegen import temperature_lines
from views.generate.session import GenerationContext
from views.generate.temperature import (
    LARGEST,
    NUMBERS,
    TemperatureSweep,
    curve_frame,
    logits_after,
    most_probable,
    parse_numbers,
    temper,
    temperature_table,
    total_frame,
)

STARTS = (0.0, 0.5, 1.0, 2.0, 5.0)
CONTEXT = 12  # tokens before the position that are shown
# The slider of a chart stands above what it moves.
SLIDER = """<style>
.stVegaLiteChart:has(.vega-bindings), .stVegaLiteChart .vega-embed { display: flex; flex-direction: column; }
.vega-bindings { order: -1; font-size: 14px; margin-bottom: 8px; }
.vega-bind label { display: flex; align-items: center; gap: 12px; }
.st-key-panel-of-numbers, .st-key-panel-of-logits { padding-right: 96px; } /* as wide as the axes */
.vega-bind input { flex: 1; max-width: 420px; }
</style>"""


def draw_temperature(here: Here, writing: GenerationContext) -> TabContent:
    here.set_defaults(t=writing.settings.temperature)
    st.html(SLIDER)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        t = here.number("t", width=150)
        for start in STARTS:
            st.button(f"T = {start:g}", on_click=GENERATE.choose, args=("t", start))
    left, right = st.columns(2, gap="large")
    with left:
        st.markdown("**Softmax of numbers**")
        st.latex(r"\mathrm{softmax}(z / T)_i = \frac{e^{z_i / T}}{\sum_j e^{z_j / T}}")
        numbers = of_numbers(here)
    with right:
        st.markdown("**The model’s logits**")
        logits, begun = of_logits(writing, t)
    return TabContent(
        sentence=f"T = {t:.2f}",
        python=lambda: temperature_lines(writing, begun, t),
        tables={"Temperature: probabilities": lambda: temperature_table(writing, begun)},
        charts=[chart for chart in (numbers, logits) if chart is not None],
    )


def of_numbers(here: Here) -> NamedChart | None:
    low, high = NUMBERS
    about = f"{low} to {high} numbers from {-LARGEST:g} to {LARGEST:g}, with commas between them"
    said = here.text("numbers", help=about)
    try:
        numbers = parse_numbers(said)
    except ValueError as error:
        st.warning(escape_markdown(f"Expected {error}; got {said[:60]!r}."))
        return None
    found = temper(torch.tensor(numbers))
    names = [f"z{chr(0x2081 + i)}" for i in range(len(numbers))]
    return show_tempered(found, names, False, "temperature of numbers", here["t"])


def of_logits(writing: GenerationContext, t: float) -> tuple[NamedChart | None, tuple[int, ...]]:
    """Draws them; the chart, if anything can follow, and the ids after the prompt and before the position."""
    if why := why_no_logits(writing.prompt):
        st.info(escape_markdown(why))
        return None, ()
    begun = place_of(writing)
    try:
        logits = logits_after(writing, begun)
    except ValueError as error:
        st.warning(escape_markdown(error))
        return None, begun
    rows = most_probable(logits)
    more = len(logits) - len(rows)
    names = [writing.piece(id) for id in rows] + ([f"{more:,} others"] if more else [])
    return show_tempered(temper(logits, rows), names, more > 0, "temperature of logits", t), begun


def show_tempered(found: TemperatureSweep, names: Sequence[str], with_rest: bool, key: str, t: float) -> NamedChart:
    data = {"curves": curve_frame(found, named_apart(names)), "totals": total_frame(found)}
    chart = NamedChart(temperature_chart, (len(found.logit), with_rest), data, {"temperature": t})
    with st.container(key=key.replace("temperature", "panel").replace(" ", "-")):
        chart.show(key, width="stretch")
    return chart


def place_of(writing: GenerationContext) -> tuple[int, ...]:
    """Draws which position of the text is looked at, of a finished one at most that of its end; the ids after the
    prompt and before it."""
    ids, at = branch_of(writing)
    most = len(ids) - (ids[-1:] != () and ids[-1] in writing.checkpoint.end_ids)
    count = most if at is None else min(at, most)
    name = f"position {writing.digest} {ids} {at}"
    prompt = writing.prompt
    pieces = [writing.piece(id) for id in (*prompt.ids, *ids[:count])]
    if ids:
        count = int(st.number_input("tokens written before it", 0, most, count, key=name, width=200))
        pieces = [writing.piece(id) for id in (*prompt.ids, *ids[:count])]
    shown = " ".join(map(code_markdown, pieces[-CONTEXT:]))
    reads = writing.checkpoint.config.context
    last = (
        ""
        if prompt.fits
        else f" (the last {reads:,} of the text’s {count_words(len(prompt.ids), 'token')}, as many as the model reads)"
    )
    st.markdown(f"What follows{last} … {shown}")
    return ids[:count]
