"""Shows a chart on a page, in the shade that the reader's browser has."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from views.charts.template import (
    AltairChart,
    ThemedChart,
    apply_altair_theme,
    least_width,
    plotly_config,
    plotly_template,
)
from views.core.component import PAGE
from views.core.theme import Shade

SHOWN = "pages with charts"  # in the session state: those whose charts have been drawn


def current_shade() -> Shade:
    return "dark" if st.context.theme.type == "dark" else "light"


def charts_wait() -> bool:
    """Tells whether the charts of this page wait until its view stands: the first time that a session opens it.

    A browser shows nothing of a page before it has loaded the libraries of all charts on it, which takes seconds. So
    the view comes first, reports that it is drawn, and the page runs again with `release_charts`.
    """
    return st.session_state.get(PAGE) not in _shown_charts()


def release_charts() -> None:
    _shown_charts().add(st.session_state.get(PAGE))


def _shown_charts() -> set[str | None]:
    shown: set[str | None] = st.session_state.setdefault(SHOWN, {None})
    return shown


def show_altair(chart: Callable[[Shade], AltairChart], *, key: str, **options: Any) -> Any:
    """Draws the chart as wide as its place. `options` are those of st.altair_chart, whose result is returned."""
    shade = current_shade()
    drawn = chart(shade)
    themed: Any = ThemedChart(drawn, shade)  # Streamlit asks a chart for nothing but its to_dict()
    least = least_width(drawn)
    if not least:
        return st.altair_chart(themed, theme=None, key=key, **options)
    place = f"sideways-{zlib.crc32(key.encode()):x}"
    st.html(f"<style>.st-key-{place} [data-testid=stVegaLiteChart] {{ min-width: {least:d}px }}</style>")
    with st.container(key=place):
        return st.altair_chart(themed, theme=None, key=key, **options)


@dataclass(frozen=True)
class NamedChart:
    """`chart(*arguments, shade)`, whose data are named, with `data` by these names and `params` at these values.

    It is compiled once for its arguments, which Altair takes long for: drawn again with other data it costs next to
    nothing, and the browser only exchanges the data.
    """

    chart: Callable[..., AltairChart]
    arguments: tuple[Hashable, ...]
    data: Mapping[str, pd.DataFrame]
    params: Mapping[str, Any] = field(default_factory=dict)

    def show(self, key: str, **options: Any) -> Any:
        """Draws it. `options` are those of st.vega_lite_chart, whose result is returned."""
        spec = compile_chart(self.chart, self.arguments, current_shade())
        named = [one | {"value": self.params.get(one["name"], one.get("value"))} for one in spec.get("params", [])]
        kept = [{name: value for name, value in one.items() if value is not None} for one in named]
        shown = {**spec, "datasets": dict(self.data), **({"params": kept} if kept else {})}
        return st.vega_lite_chart(shown, theme=None, key=key, **options)

    def figure(self, shade: Shade) -> AltairChart:
        """The whole chart, for a file."""
        found = self.chart(*self.arguments, shade)
        empty = {name: frame.astype(object).where(frame.notna(), None) for name, frame in self.data.items()}
        found.datasets = {name: frame.to_dict("records") for name, frame in empty.items()}  # JSON has no NaN
        for one in found.params if isinstance(found.params, list) else ():
            if one.name in self.params:
                one.value = self.params[one.name]
        return found


@lru_cache(maxsize=256)
def compile_chart(chart: Callable[..., AltairChart], arguments: tuple[Hashable, ...], shade: Shade) -> dict[str, Any]:
    found: dict[str, Any] = apply_altair_theme(chart(*arguments, shade), shade).to_dict()
    return found


def show_plotly(figure: Callable[[Shade], go.Figure], *, key: str, **options: Any) -> Any:
    """Draws the figure as wide as its place. `options` are those of st.plotly_chart, whose result is returned."""
    shade = current_shade()
    drawn = figure(shade).update_layout(template=plotly_template(shade))
    return st.plotly_chart(drawn, theme=None, key=key, config=plotly_config(key.replace(" ", "-")), **options)
