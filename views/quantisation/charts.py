"""Charts of the page Quantisation, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from views.charts.template import AltairChart, at_least, colors
from views.core.theme import Shade
from views.why.charts import signed_cells


def draw_effects(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`effect` of each matrix, by block and part."""
    told = [alt.Tooltip("matrix"), alt.Tooltip("kl", format=".2e", title="KL, nats")]
    told += [alt.Tooltip("error", format=".4f", title="size of the change, of the matrix")]
    parts, blocks = (list(dict.fromkeys(table[name])) for name in ("part", "block"))
    named = table.assign(value=table["effect"])
    return signed_cells(named, shade, ("part", "matrix", parts), ("block", "block", blocks), told, does="change")


def draw_errors(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`kl` of each matrix against the size of its change: what is large in the weights need not be in the
    prediction."""
    told = [
        alt.Tooltip("matrix"),
        alt.Tooltip("error", format=".4f"),
        alt.Tooltip("kl", format=".2e", title="KL, nats"),
    ]
    drawn = alt.Chart(table, height=260).mark_point(filled=True, size=60, opacity=0.8)
    parts = list(dict.fromkeys(table["part"]))
    roles = ["query", "key", "value", "attention", "mlp", "residual", "probability", "edited", "soft"]
    scale = alt.Scale(domain=parts, range=[colors(shade)[roles[at % len(roles)]] for at in range(len(parts))])
    return at_least(
        drawn.encode(
            x=alt.X("error:Q", title="size of the change, of the matrix", scale=alt.Scale(zero=False)),
            y=alt.Y("kl:Q", title="KL of the prediction, nats"),
            color=alt.Color("part:N", title=None, scale=scale),
            tooltip=told,
        ),
        420,
    )


CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {
    "Each matrix exchanged by itself": ("exchanged_matrices", draw_effects),
    "How large a change is, and what it does": ("matrix_errors", draw_errors),
}
