"""Shows a chart on a page, in the shade that the reader's browser has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from views.charts.template import AltairChart, apply_altair_theme, plotly_config, plotly_template
from views.core.theme import Shade


def current_shade() -> Shade:
    return "dark" if st.context.theme.type == "dark" else "light"


def show_altair(chart: Callable[[Shade], AltairChart], *, key: str, **options: Any) -> Any:
    """Draws the chart as wide as its place. `options` are those of st.altair_chart, whose result is returned."""
    shade = current_shade()
    return st.altair_chart(apply_altair_theme(chart(shade), shade), theme=None, key=key, **options)


def show_plotly(figure: Callable[[Shade], go.Figure], *, key: str, **options: Any) -> Any:
    """Draws the figure as wide as its place. `options` are those of st.plotly_chart, whose result is returned."""
    shade = current_shade()
    drawn = figure(shade).update_layout(template=plotly_template(shade))
    return st.plotly_chart(drawn, theme=None, key=key, config=plotly_config(key.replace(" ", "-")), **options)
