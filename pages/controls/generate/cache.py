"""The tab Cache: what the KV cache costs and saves by length, beneath the grid of what it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from engine.analysis.caching import TokenTime
from engine.plurals import count_words
from pages.controls.generate.tabs import TabContent, branch_of
from pages.controls.share.measure import Measurement, measure_button, measurement
from views.charts.show import NamedChart
from views.generate.charts import cost_chart, cost_frame, time_frame
from views.generate.kv_cache import CachedPrompt, costs, dtype_of, measure_token, time_table
from views.generate.session import GenerationContext


def draw_cache(writing: GenerationContext) -> TabContent:
    found = costs(writing.checkpoint.config, len(writing.prompt.source), dtype_of(writing))
    by_length = LengthCharts(CachedPrompt(writing, branch_of(writing)[0]), writing.checkpoint.config.context)
    measuring = measurement("cache", writing.digest)
    work, memory, times = st.columns(3, gap="large")
    with work:
        work_chart = draw_work(by_length, found)
    with memory:
        memory_chart = draw_memory(by_length, found)
    with times:
        draw_seen = draw_times(by_length, measuring)

    def times_of() -> Iterator[TokenTime]:
        return (measure_token(by_length.cached, one) for one in found["times"])

    time_charts = [by_length.times(measuring.results)] if measuring.results else []
    return TabContent(
        tables={"Cache: seconds": lambda: time_table(writing, measuring.results)},
        charts=[work_chart, memory_chart, *time_charts],
        work=lambda: measuring.go_on(times_of(), draw_seen),
    )


@dataclass(frozen=True)
class LengthCharts:
    """Charts over the length, with a rule at that of the text; `context` is their longest."""

    cached: CachedPrompt
    context: int

    @property
    def length_frame(self) -> pd.DataFrame:
        return pd.DataFrame({"length": [len(self.cached.ids)]})

    def costs(self, lengths: Sequence[int], values: Mapping[str, Sequence[float] | None], unit: str) -> NamedChart:
        series = tuple(name for name, column in values.items() if column)
        data = {"costs": cost_frame(lengths, values), "now": self.length_frame}
        return NamedChart(cost_chart, (series, unit, self.context, unit == "bytes", False), data)

    def times(self, seen: Sequence[TokenTime]) -> NamedChart:
        series = ("with the cache", "without")
        data = {"costs": time_frame(seen), "now": self.length_frame}
        return NamedChart(cost_chart, (series, "milliseconds", self.context, False, True), data)


def draw_work(by_length: LengthCharts, found: Mapping[str, Any]) -> NamedChart:
    st.markdown("**Work of one token**")
    st.caption("multiply-adds, by formula")
    values = {"with the cache": found["cached"], "without": found["again"]}
    chart = by_length.costs(found["lengths"], values, "multiply-adds")
    chart.show("cache work")
    ratio = round(found["again"][-1] / found["cached"][-1])
    st.caption(f"{ratio:,} times less with the cache at {count_words(by_length.context, 'position')}.")
    return chart


def draw_memory(by_length: LengthCharts, found: Mapping[str, Any]) -> NamedChart:
    st.markdown("**Memory**")
    st.caption("bytes, exactly")
    values = {
        "this model": found["bytes"],
        "if every query head had its own": found["wide"],
        "GPT-2 small": found["reference"],
    }
    chart = by_length.costs(found["lengths"], values, "bytes")
    chart.show("cache memory")
    st.caption(
        f"{found['bytes'][-1]:,} bytes when the context is full. GPT-2 small: {found['reference_each']:,} bytes a "
        f"position, {found['reference_bytes']:,} at its {found['reference_context']:,}."
    )
    return chart


def draw_times(by_length: LengthCharts, measuring: Measurement[TokenTime]) -> Callable[[], None]:
    """Draws the times that are measured so far, and returns what draws them again in the same place."""
    st.markdown("**Time of one token**")
    st.caption("on this machine, the median of five")
    place = st.empty()
    measure_button("cache", measuring)

    def draw() -> None:
        seen = measuring.results
        with place.container():
            if not seen:
                st.caption("Nothing is measured yet.")
                return
            by_length.times(seen).show("cache time")
            ratio = seen[-1].again / seen[-1].cached
            st.caption(f"{ratio:.1f} times faster with the cache at {count_words(seen[-1].length, 'position')}.")

    draw()
    return draw
