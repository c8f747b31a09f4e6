"""A sound's frames, and attention over its seconds and over tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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


@dataclass(frozen=True)
class Moments:
    """Keys or queries that are moments of a sound, one every `step` seconds from `start`."""

    step: float
    start: float = 0.0


def draw_look(
    pattern: Tensor, queries: Moments | Sequence[str], keys: Moments | Sequence[str], shade: Shade
) -> go.Figure:
    """`pattern` is pos key; each axis is of moments or of tokens."""
    x, column, key = axis("x", keys)
    y, row, query = axis("y", queries)
    heat = go.Heatmap(
        z=pattern.numpy(), **x, **y, zmin=0, colorscale=ramp(shade, "attention"), colorbar={"title": "weight"},
        hovertemplate=f"{query} to {key}: %{{z:.4f}}<extra></extra>",
    )  # fmt: skip
    tall = 560 if isinstance(queries, Moments) is isinstance(keys, Moments) else 320
    figure = go.Figure(heat).update_layout(xaxis_title=f"key, {column}", yaxis_title=f"query, {row}", height=tall)
    return figure.update_yaxes(autorange="reversed")


def axis(name: str, places: Moments | Sequence[str]) -> tuple[dict[str, Any], str, str]:
    """How Plotly places them, what they are called, and how one is written."""
    if isinstance(places, Moments):
        return {f"{name}0": places.start, f"d{name}": places.step}, "seconds", f"%{{{name}:.2f}} s"
    return {name: [f"{at + 1} {piece}" for at, piece in enumerate(places)]}, "token", f"%{{{name}}}"


def layout(figure: go.Figure, rows: str) -> go.Figure:
    return figure.update_layout(xaxis_title="seconds", yaxis_title=rows, height=320)
