"""What attention over long sequences costs and what it keeps: two charts, a row of patterns, a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import pandas as pd
import plotly.graph_objects as go

from engine.long.compare import Searched
from engine.long.cost import Cost
from engine.long.kept import Kept
from engine.long.measure import KINDS, Point, grown

SHAPES = ["square", "cross", "circle", "diamond", "triangle-up", "triangle-down"]  # of KINDS, never told by hue alone
TITLES = {"full": "full", **{kind: KINDS[kind] for kind in ("window", "blocks", "nearest", "quantized")}}
CHART_HEIGHT, PATTERN_HEIGHT = 340, 250
BRIGHTEST = 0.3  # weights from here on have the full hue: at 1 only the first token would be seen
SECONDS = (
    "datum.value >= 1 ? format(datum.value, '~r') + ' s' : datum.value >= 1e-3 ? "
    "format(datum.value * 1e3, '~r') + ' ms' : format(datum.value * 1e6, '~r') + ' µs'"
)
BYTES = (
    "datum.value >= 1e9 ? format(datum.value / 1e9, '~r') + ' GB' : datum.value >= 1e6 ? "
    "format(datum.value / 1e6, '~r') + ' MB' : format(datum.value / 1e3, '~r') + ' kB'"
)


def measured_rows(points: Sequence[Point]) -> pd.DataFrame:
    """One row a measured point."""
    rows = [
        (KINDS[p.kind], p.length, p.seconds, p.bytes, p.cost.multiply_adds, p.cost.lookups, p.recall) for p in points
    ]
    columns = ["kind", "length", "seconds", "bytes", "multiply-adds", "look-ups", "recall"]
    return pd.DataFrame(rows, columns=columns)


def formula_rows(
    points: Sequence[Point], lengths: Sequence[int], formulas: Mapping[str, Sequence[Cost]]
) -> pd.DataFrame:
    """The formulas at every length. Bytes are bytes; for the time, multiply-adds and look-ups become seconds at the
    rate of the longest measured point of their kind, and there is none for a kind without points."""
    last = {point.kind: point for point in points}
    rows = [
        (KINDS[kind], length, last[kind].seconds * grown(last[kind].cost, cost) if kind in last else None, cost.bytes)
        for kind, costs in formulas.items()
        for length, cost in zip(lengths, costs, strict=True)
    ]
    return pd.DataFrame(rows, columns=["kind", "length", "seconds", "bytes"])


def cost_chart(measured: pd.DataFrame, formula: pd.DataFrame, what: str) -> alt.LayerChart | alt.FacetChart:
    """`what`, "seconds" or "bytes", against the length, both logarithmic: points measured, dashed lines the formula."""
    lengths = sorted(formula["length"].unique().tolist())
    values = pd.concat([measured[what], formula[what]]).dropna()
    low, high = (int(f(np.log10(values.agg(end)))) for f, end in ((np.floor, "min"), (np.ceil, "max")))
    x = alt.X("length:Q", title="length, positions").scale(
        type="log", base=2, domain=[lengths[0], lengths[-1]], nice=False
    )
    y = alt.Y(f"{what}:Q", title="time of one layer" if what == "seconds" else "memory at the peak")
    x = x.axis(values=lengths, format=",", grid=False, labelOverlap=True)
    y = y.scale(type="log", domain=[10.0**low, 10.0**high], nice=False).axis(
        values=[10.0**power for power in range(low, high + 1)], labelExpr=SECONDS if what == "seconds" else BYTES
    )
    legend = alt.Legend(title=None, orient="bottom", columns=2, symbolOpacity=1, symbolStrokeWidth=0)
    names = list(KINDS.values())
    color = alt.Color("kind:N").scale(domain=names).legend(legend)
    shape = alt.Shape("kind:N").scale(domain=names, range=SHAPES).legend(legend)
    tooltip = [alt.Tooltip("kind:N"), *(alt.Tooltip(f"{name}:Q", format=",") for name in ("length", "bytes"))]
    tooltip += [alt.Tooltip("seconds:Q", format=".3~s"), alt.Tooltip("recall:Q", format=".3f")]
    tooltip += [alt.Tooltip(f"{name}:Q", format=",") for name in ("multiply-adds", "look-ups")]
    lines = alt.Chart(formula).mark_line(strokeDash=[4, 3], strokeWidth=1.5, opacity=0.7, clip=True)
    points = alt.Chart(measured).mark_point(filled=True, size=60, opacity=1)
    return alt.layer(
        lines.encode(x=x, y=y, color=color), points.encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip)
    ).properties(height=CHART_HEIGHT)


def pattern_figure(kept: Kept) -> go.Figure:
    """One matrix pos key; where a query may not look there is the ground."""
    shown = np.where(kept.allowed.numpy(), kept.pattern.numpy(), np.nan)
    heat = go.Heatmap(
        z=shown, zmin=0, zmax=BRIGHTEST, showscale=False, hovertemplate="query %{y}, key %{x}: %{z:.4f}<extra></extra>"
    )
    figure = go.Figure(heat)
    figure.update_xaxes(constrain="domain", side="bottom", showgrid=False, zeroline=False, nticks=4)
    figure.update_yaxes(
        autorange="reversed", scaleanchor="x", constrain="domain", showgrid=False, zeroline=False, nticks=4
    )
    figure.update_layout(height=PATTERN_HEIGHT, margin={"l": 30, "r": 4, "t": 4, "b": 24})
    return figure


def caption(kept: Kept, name: str) -> str:
    """What a pattern keeps, in a line of Markdown."""
    return f"**{TITLES[name]}**  \nkeeps {kept.mass:.1%} of the attention in {kept.cells:.1%} of the cells"


def search_table(rows: Sequence[Searched]) -> pd.DataFrame:
    """One row a way to search."""
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


def formats(table: pd.DataFrame) -> dict[str, str]:
    """How each column of numbers is written."""
    shown = {"µs a query": "%.1f", "kept, MB": "%.2f"}
    return {name: "%.3f" if name.startswith("recall") else shown.get(name, "localized") for name in table.columns[1:]}
