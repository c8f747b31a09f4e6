"""A sound's frames and the decoder's attention to them, over seconds."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go
from torch import Tensor

from views.core.theme import Shade, ramp


def draw_mel(mel: Tensor, step: float, shade: Shade) -> go.Figure:
    """`mel` is frame mel, a frame every `step` seconds."""
    bar = {"title": "log-mel"}
    told = "%{x:.2f} s, bin %{y}: %{z:.4f}<extra></extra>"
    scale = ramp(shade, "residual")
    heat = go.Heatmap(z=mel.T.numpy(), x0=0, dx=step, colorscale=scale, colorbar=bar, hovertemplate=told)
    return layout(go.Figure(heat), "mel bin")


def draw_crossing(pattern: Tensor, pieces: Sequence[str], step: float, shade: Shade) -> go.Figure:
    """`pattern` is pos key, a key every `step` seconds; `pieces` are the tokens of its rows."""
    rows = [f"{at + 1} {piece}" for at, piece in enumerate(pieces)]
    told = "%{y}<br>%{x:.2f} s: %{z:.4f}<extra></extra>"
    heat = go.Heatmap(z=pattern.numpy(), x0=0, dx=step, y=rows, zmin=0, colorscale=ramp(shade, "attention"),
        colorbar={"title": "weight"}, hovertemplate=told,
    )  # fmt: skip
    return layout(go.Figure(heat), "token").update_yaxes(autorange="reversed")


def layout(figure: go.Figure, rows: str) -> go.Figure:
    return figure.update_layout(xaxis_title="seconds", yaxis_title=rows, height=320)
