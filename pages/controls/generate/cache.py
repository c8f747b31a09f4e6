"""The tab Cache: what the KV cache costs and saves by length, beneath the grid of what it holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd
import streamlit as st

from engine.analysis.caching import TokenTime
from pages.controls.generate.tabs import Shown, branch_of
from pages.controls.share.measure import measure_button, measurement
from views.charts.show import NamedChart
from views.generate.charts import cost_chart, cost_frame, time_frame
from views.generate.kv_cache import Cached, costs, dtype_of, measure_token, time_table
from views.generate.session import Writing


def draw_cache(writing: Writing) -> Shown:
    config = writing.checkpoint.config
    found = costs(config, len(writing.prompt.source), dtype_of(writing))
    cached = Cached(writing, branch_of(writing)[0])
    here = pd.DataFrame({"length": [len(cached.ids)]})

    charts: list[NamedChart] = []

    def draw_costs(values: Mapping[str, Sequence[float] | None], unit: str, key: str) -> None:
        series = tuple(name for name, column in values.items() if column)
        data = {"costs": cost_frame(found["lengths"], values), "now": here}
        charts.append(NamedChart(cost_chart, (series, unit, config.context, unit == "bytes", False), data))
        charts[-1].show(key)

    work, memory, times = st.columns(3, gap="large")
    with work:
        st.markdown("**Work of one token**")
        st.caption("multiply-adds, by formula")
        values = {"with the cache": found["cached"], "without": found["again"]}
        draw_costs(values, "multiply-adds", "cache work")
        ratio = round(found["again"][-1] / found["cached"][-1])
        st.caption(f"{ratio:,} times less with the cache at {config.context:,} positions.")
    with memory:
        st.markdown("**Memory**")
        st.caption("bytes, exactly")
        values = {
            "this model": found["bytes"],
            "if every query head had its own": found["wide"],
            "GPT-2 small": found["reference"],
        }
        draw_costs(values, "bytes", "cache memory")
        st.caption(
            f"{found['bytes'][-1]:,} bytes when the context is full. GPT-2 small: {found['reference_each']:,} bytes a "
            f"position, {found['reference_bytes']:,} at its {found['reference_context']:,}."
        )
    with times:
        st.markdown("**Time of one token**")
        st.caption("on this machine, the median of five")
        measuring = measurement("cache", writing.digest)
        place = st.empty()
        measure_button("cache", measuring)

        def of_times(seen: Sequence[TokenTime]) -> NamedChart:
            series = ("with the cache", "without")
            data = {"costs": time_frame(seen), "now": here}
            return NamedChart(cost_chart, (series, "milliseconds", config.context, False, True), data)

        def draw() -> None:
            seen = measuring.found
            with place.container():
                if not seen:
                    st.caption("Nothing is measured yet.")
                    return
                of_times(seen).show("cache time")
                ratio = seen[-1].again / seen[-1].cached
                st.caption(f"{ratio:.1f} times faster with the cache at {seen[-1].length:,} positions.")

        draw()

    def times_of() -> Iterator[TokenTime]:
        return (measure_token(cached, one) for one in found["times"])

    return Shown(
        tables={"Cache: seconds": lambda: time_table(writing, measuring.found)},
        charts=[*charts, *([of_times(measuring.found)] if measuring.found else [])],
        work=lambda: measuring.go_on(times_of(), draw),
    )
