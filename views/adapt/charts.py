"""Charts of what a training changed: each matrix and each head, block by block, and the spectrum of a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from torch import Tensor

from engine.analysis.adaptation import MatrixChange
from views.charts.template import AltairChart, colors
from views.core.theme import Shade, diverging_scale, ramp

ROW, HEIGHT = 26, 260  # CSS pixels
RANKS = 64


def matrix_table(changes: Sequence[MatrixChange]) -> pd.DataFrame:
    """Table: block (from 1), matrix, change."""
    rows = [(one.layer + 1, f"{one.stack}{one.part}", one.relative) for one in changes]
    return pd.DataFrame(rows, columns=["block", "matrix", "change"])


def draw_matrices(table: pd.DataFrame, shade: Shade) -> AltairChart:
    return _heat(table, shade, "matrix", "||W' − W|| / ||W||")


def head_table(moved: Tensor) -> pd.DataFrame:
    """`moved` is layer head. Table: block, head (from 1), change."""
    rows = [(layer + 1, head + 1, float(x)) for layer, row in enumerate(moved) for head, x in enumerate(row)]
    return pd.DataFrame(rows, columns=["block", "head", "change"])


def draw_heads(table: pd.DataFrame, shade: Shade) -> AltairChart:
    return _heat(table, shade, "head", "share of the weight that moved")


def _heat(table: pd.DataFrame, shade: Shade, across: str, title: str) -> AltairChart:
    scale = alt.Scale(range=ramp(shade, "attention"), domainMin=0)
    legend = alt.Legend(format=".0%", orient="top", titleLimit=300)
    return (
        alt.Chart(table, height=alt.Step(ROW))
        .mark_rect()
        .encode(
            x=alt.X(f"{across}:O", title=across, sort=None, axis=alt.Axis(labelAngle=-35)),
            y=alt.Y("block:O", title="block"),
            color=alt.Color("change:Q", title=title, scale=scale, legend=legend),
            tooltip=["block", across, alt.Tooltip("change", format=".6f", title=title)],
        )
    )


def draw_confusion(table: pd.DataFrame, shade: Shade, counted: str = "rows") -> AltairChart:
    """Counts of rows, or what else is `counted`, by `label`, their own, and `predicted`, the model's."""
    counts = table.value_counts(["label", "predicted"]).rename(counted).reset_index()
    cells = alt.Chart(counts, height=alt.Step(ROW)).encode(
        x=alt.X("predicted:N", title="predicted", axis=alt.Axis(labelAngle=-35)), y=alt.Y("label:N", title="label")
    )
    scale = alt.Scale(range=ramp(shade, "attention"), domainMin=0)
    full, pale = (alt.value(colors(shade)[role]) for role in ("ground", "ink"))
    ink = alt.condition(f"datum.{counted} > {counts[counted].max() / 2}", full, pale)
    colour = alt.Color(f"{counted}:Q", scale=scale, legend=None)
    painted = cells.mark_rect().encode(color=colour, tooltip=["label", "predicted", counted])
    return painted + cells.mark_text().encode(text=f"{counted}:Q", color=ink)


def spectrum_table(changes: dict[str, tuple[Tensor, Tensor]]) -> pd.DataFrame:
    """`changes` has by its name the singular values of a change, and what the best matrix of each rank catches of it.
    Table: of, rank (from 1, up to RANKS), singular value, caught."""
    rows = [
        (name, rank, float(value), float(share))
        for name, (values, shares) in changes.items()
        for rank, (value, share) in enumerate(zip(values[:RANKS], shares[:RANKS], strict=True), 1)
    ]
    return pd.DataFrame(rows, columns=["of", "rank", "singular value", "caught"])


def draw_spectrum(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """Both over the rank: singular values, and the bound on what that rank can catch (Eckart & Young 1936)."""
    hues = [colors(shade)[role] for role in ("attention", "value")]
    lines = alt.Chart(table, height=HEIGHT).encode(
        x=alt.X("rank:Q", title="rank"),
        color=alt.Color("of:N", title=None, sort=None, scale=alt.Scale(range=hues), legend=alt.Legend(orient="top")),
        tooltip=["of", "rank", alt.Tooltip("singular value", format=".6g"), alt.Tooltip("caught", format=".4%")],
    )
    values = lines.mark_line(point=True).encode(y=alt.Y("singular value:Q", title="singular value of the change"))
    shares = lines.mark_line(strokeDash=[5, 4], point=True).encode(
        y=alt.Y("caught:Q", title="explained by the best rank-r approximation", axis=alt.Axis(format="%"))
    )
    return alt.hconcat(values.properties(width=440), shares.properties(width=440))


def draw_matrices_beside(matrices: Mapping[str, Tensor], shade: Shade) -> go.Figure:
    """Matrices of one shape side by side, out in, each on a signed scale of its own largest element."""
    figure = make_subplots(1, len(matrices), subplot_titles=list(matrices), horizontal_spacing=0.06)
    scale = diverging_scale(shade, "value")
    for column, matrix in enumerate(matrices.values(), 1):
        most = float(matrix.abs().max()) or 1.0
        bar = {"orientation": "h", "x": (column - 0.5) / len(matrices), "y": -0.3, "len": 0.25, "thickness": 8}
        heat = go.Heatmap(z=matrix.numpy(), zmin=-most, zmax=most, colorscale=scale, colorbar=bar,
            hovertemplate="out %{y}, in %{x}: %{z:.6g}<extra></extra>",
        )  # fmt: skip
        figure.add_trace(heat, 1, column)
        figure.update_yaxes(autorange="reversed", row=1, col=column)
    figure.update_layout(height=420, margin_b=90)
    return figure
