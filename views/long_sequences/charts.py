"""Figures and tables of what attention costs by length: points measured, dashed lines by formula, searches compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

import altair as alt
import pandas as pd

from engine.attention_variants.compare import SearchMeasurement
from engine.attention_variants.cost import Cost
from engine.attention_variants.measure import KINDS, Point, grown
from views.charts.show import NamedChart
from views.charts.template import AltairChart, colors, pan_and_zoom
from views.core.theme import Shade

Quantity = Literal["seconds", "bytes"]
HEIGHT = 380  # px
UNITS = {"seconds": "s", "bytes": "B"}
TITLES: dict[Quantity, str] = {"seconds": "Time of one layer", "bytes": "Memory at the peak"}
AXES = {"seconds": "time (s)", "bytes": "memory (bytes)"}
EDGE = 1.12  # factor by which the axis of lengths goes on beyond the first and the last
POWER_OF_TEN = "abs(log(datum.value) / LN10 - round(log(datum.value) / LN10)) < 1e-6"
EXACT = {"seconds": ".6~g", "bytes": ","}
MARKS = {  # hue and shape of each kind: never told apart by hue alone
    "explicit": ("attention", "square"),
    "fused": ("probability", "cross"),
    "window": ("residual", "circle"),
    "blocks": ("key", "diamond"),
    "nearest": ("query", "triangle-up"),
    "quantized": ("value", "triangle-down"),
}


def measured_rows(points: Sequence[Point]) -> pd.DataFrame:
    """Table of the measured points: kind, length in positions, seconds, bytes, multiply-adds, look-ups, recall."""
    rows = [
        (KINDS[p.kind], p.length, p.seconds, p.bytes, p.cost.multiply_adds, p.cost.lookups, p.recall) for p in points
    ]
    columns = ["kind", "length", "seconds", "bytes", "multiply-adds", "look-ups", "recall"]
    return pd.DataFrame(rows, columns=columns)


def formula_rows(
    points: Sequence[Point], lengths: Sequence[int], formulas: Mapping[str, Sequence[Cost]]
) -> pd.DataFrame:
    """Table of the formulas at every length: kind, length in positions, seconds, bytes.

    Seconds are multiply-adds and look-ups at the rate of the longest measured point of their kind, and missing for a
    kind without points.
    """
    last = {point.kind: point for point in points}
    rows = [
        (KINDS[kind], length, last[kind].seconds * grown(last[kind].cost, cost) if kind in last else None, cost.bytes)
        for kind, costs in formulas.items()
        for length, cost in zip(lengths, costs, strict=True)
    ]
    return pd.DataFrame(rows, columns=["kind", "length", "seconds", "bytes"])


def search_table(rows: Sequence[SearchMeasurement]) -> pd.DataFrame:
    """Table of the searches: recall@k, operations and time of one query, memory."""
    return pd.DataFrame(
        {
            "search": row.name,
            **{f"recall@{k}": value for k, value in row.recall.items()},
            "multiply-adds a query": row.cost.multiply_adds,
            "look-ups a query": row.cost.lookups,
            "µs a query": row.seconds * 1e6,
            "kept, MB": row.bytes / 1e6,
        }
        for row in rows
    )


def draw_costs(
    measured: pd.DataFrame, formulas: pd.DataFrame, quantity: Quantity, kinds: Collection[str]
) -> NamedChart:
    """Time or memory by length of those `kinds` (keys of KINDS) that are shown."""
    shown = tuple(kind for kind in KINDS if kind in kinds)
    names = [KINDS[kind] for kind in shown]
    exact = formulas.rename(columns={"seconds": "seconds by formula", "bytes": "bytes by formula"})
    points = measured[measured["kind"].isin(names)].merge(exact, on=["kind", "length"], how="left")
    points["recall by search"] = [f"{recall:.3f}" if pd.notna(recall) else "—" for recall in points["recall"]]
    lines = formulas[formulas["kind"].isin(names)].dropna(subset=[quantity])
    lengths = tuple(sorted(formulas["length"].unique().tolist()))
    return NamedChart(cost_chart, (quantity, shown, lengths), {"formulas": lines, "points": points})


def cost_chart(quantity: Quantity, shown: Sequence[str], lengths: Sequence[int], shade: Shade) -> AltairChart:
    """Chart of the data `points` and `formulas`, both axes logarithmic."""
    of, names = colors(shade), [KINDS[kind] for kind in shown]
    x = alt.X(
        "length:Q",
        title="length (positions)",
        scale=alt.Scale(type="log", base=2, domain=[lengths[0] / EDGE, lengths[-1] * EDGE], nice=False),
        axis=alt.Axis(values=lengths, format=",", labelOverlap="greedy", grid=False),
    )
    y = alt.Y(
        f"{quantity}:Q",
        title=AXES[quantity],
        scale=alt.Scale(type="log"),
        axis=alt.Axis(
            format="~s",
            labelExpr=f"datum.label ? replace(datum.label, regexp('([^0-9]?)$'), ' $1{UNITS[quantity]}') : ''",
            tickCount=6,
            gridOpacity=alt.condition(POWER_OF_TEN, alt.value(1), alt.value(0)),
        ),
    )
    hues = alt.Scale(domain=names, range=[of[MARKS[kind][0]] for kind in shown])
    shapes = alt.Scale(domain=names, range=[MARKS[kind][1] for kind in shown])
    legend = alt.Legend(title=None, columns=2, labelLimit=200)
    color = alt.Color("kind:N", scale=hues, legend=legend)
    dashes = alt.Chart(alt.NamedData("formulas")).mark_line(strokeDash=[4, 3], strokeWidth=1.6, opacity=0.75)
    dashes = dashes.encode(x=x, y=y, color=color).add_params(pan_and_zoom())
    near = alt.selection_point(
        nearest=True, on="pointerover", clear="pointerout", fields=["kind", "length"], empty=False
    )
    tooltip = [
        alt.Tooltip("kind:N"),
        alt.Tooltip("length:Q", title="positions", format=","),
        alt.Tooltip(f"{quantity}:Q", title=f"{quantity}, measured", format=EXACT[quantity]),
        alt.Tooltip(f"{quantity} by formula:Q", format=EXACT[quantity]),
        alt.Tooltip("multiply-adds:Q", format=","),
        alt.Tooltip("look-ups:Q", format=","),
        alt.Tooltip("recall by search:N", title="recall"),
    ]
    dots = alt.Chart(alt.NamedData("points")).mark_point(filled=True, opacity=1).encode(
        x=x, y=y, color=color, shape=alt.Shape("kind:N", scale=shapes, legend=legend),
        size=alt.condition(near, alt.value(190), alt.value(70)), tooltip=tooltip,
    ).add_params(near)  # fmt: skip
    layers = alt.layer(dashes, dots)
    return layers.properties(title=TITLES[quantity], width="container", height=HEIGHT)
