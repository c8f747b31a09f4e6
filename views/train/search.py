"""The chart of a search: what its runs came to over one option, a colour for each value of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

from views.charts.template import AltairChart, colors
from views.core.theme import SERIES, Shade

HEIGHT = 300  # CSS pixels
FAR = 8.0  # from which ratio of the largest to the smallest value an axis is logarithmic
REPEATS = "seed"  # an option that repeats a run and is no axis while there is another


def split_keys(table: pd.DataFrame, keys: Sequence[str]) -> tuple[str, str]:
    """Options of the x axis and of the colours, "" where there is no other: numbers along x, where there are any."""
    free = [key for key in keys if key != REPEATS] or list(keys)
    across = next((key for key in free if pd.api.types.is_numeric_dtype(table[key])), free[0])
    return across, next((key for key in free if key != across), "")


def sort_values(column: pd.Series) -> list[Any]:
    """Different values, numbers by their size before texts."""
    return sorted(set(column), key=lambda value: (isinstance(value, str), value))


def search_chart(table: pd.DataFrame, keys: Sequence[str], measure: str, shade: Shade) -> AltairChart:
    """A point for each run of the table that has the `measure`, full for one that has `ended`, and lines through the
    means of these.

    The table has a column for each of the `keys`, `run`, `ended` and `measure`; the axis is of all its rows.
    """
    across, by = split_keys(table, keys)
    named = {key: key.replace(".", "_") for key in keys}  # a dot is a path in Vega-Lite
    rows = table.dropna(subset=[measure]).rename(columns=named | {measure: "value"})
    numeric = pd.api.types.is_numeric_dtype(table[across]) and across != REPEATS
    low, high = (table[across].min(), table[across].max()) if numeric else (0, 0)
    far = numeric and low > 0 and high / low >= FAR
    axis = alt.Axis(format="~g", values=sorted(set(table[across]))) if numeric else alt.Axis(labelAngle=-25)
    scale = alt.Scale(domain=sort_values(table[across]))
    if numeric:
        scale = alt.Scale(type="log" if far else "linear", domain=[low, high], nice=False, padding=24)
    kind = "Q" if numeric else "N"
    hues = [colors(shade)[role] for role in SERIES]
    groups = sort_values(table[by]) if by else []
    base = alt.Chart(rows, height=HEIGHT).encode(
        x=alt.X(f"{named[across]}:{kind}", title=across, scale=scale, axis=axis),
        color=alt.Color(f"{named[by]}:N", title=by, scale=alt.Scale(domain=groups, range=hues))
        if by
        else alt.value(hues[0]),
    )
    told = [alt.Tooltip(f"{named[key]}:N", title=key) for key in keys]
    y = alt.Y("value:Q", title=measure, scale=alt.Scale(zero=False))
    full = alt.condition("datum.ended", alt.value(0.9), alt.value(0))
    told += [alt.Tooltip("value:Q", title=measure, format=".6g")]
    points = base.mark_point(size=70, opacity=1).encode(
        y=y, fillOpacity=full, fill=base.encoding.color, tooltip=[alt.Tooltip("run:N"), *told]
    )
    means = base.transform_filter("datum.ended").mark_line(opacity=0.6)
    return means.encode(y=alt.Y("mean(value):Q", title=measure)) + points
