"""Shows a chart on a page, in the shade that the reader's browser has."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import pandas as pd
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


def show_template(
    chart: Callable[..., AltairChart],
    *arguments: Hashable,
    data: Mapping[str, pd.DataFrame],
    params: Mapping[str, Any] = MappingProxyType({}),
    key: str,
    **options: Any,
) -> Any:
    """Draws `chart(*arguments, shade)`, whose data are named, with `data` by these names and `params` at these values.

    The chart is compiled once for its arguments, which Altair takes long for: a chart that is drawn again with other
    data costs next to nothing, and the browser only exchanges the data. `options` are those of st.vega_lite_chart.
    """
    spec = compiled(chart, arguments, current_shade())
    named = [{**one, "value": params[one["name"]]} if one["name"] in params else one for one in spec.get("params", [])]
    shown = {**spec, "datasets": dict(data), **({"params": named} if named else {})}
    return st.vega_lite_chart(shown, theme=None, key=key, **options)


@lru_cache(maxsize=256)
def compiled(chart: Callable[..., AltairChart], arguments: tuple[Hashable, ...], shade: Shade) -> dict[str, Any]:
    found: dict[str, Any] = apply_altair_theme(chart(*arguments, shade), shade).to_dict()
    return found


def with_data(chart: AltairChart, data: Mapping[str, pd.DataFrame]) -> AltairChart:
    """The chart with the data that it names, for a file."""
    chart.datasets = {name: frame.to_dict("records") for name, frame in data.items()}
    return chart


def show_plotly(figure: Callable[[Shade], go.Figure], *, key: str, **options: Any) -> Any:
    """Draws the figure as wide as its place. `options` are those of st.plotly_chart, whose result is returned."""
    shade = current_shade()
    drawn = figure(shade).update_layout(template=plotly_template(shade))
    return st.plotly_chart(drawn, theme=None, key=key, config=plotly_config(key.replace(" ", "-")), **options)
