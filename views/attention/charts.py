"""Charts of what the page Attention asks about all layers at once, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from views.charts.template import AltairChart
from views.core.theme import Shade, ramp

ROW = 22  # CSS pixels of a block


def draw_entropy(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """Heatmap of `layer`, `pos`, `pos_token`, `entropy`."""
    colour = alt.Scale(range=ramp(shade, "attention"), domainMin=0)
    place = table["pos"].astype(str) + " " + table["pos_token"]
    shown = table.assign(block=table["layer"] + 1, place=place, entropy=table["entropy"].astype(float))
    return (
        alt.Chart(shown, height=alt.Step(ROW))
        .mark_rect()
        .encode(
            x=alt.X("place:O", title="query", sort=None, axis=alt.Axis(labelOverlap=True, labelAngle=-45)),
            y=alt.Y("block:O", title="block", sort="descending"),
            color=alt.Color("entropy:Q", title="mean entropy, bits", scale=colour),
            tooltip=["block", alt.Tooltip("place", title="query"), alt.Tooltip("entropy", format=".6f", title="bits")],
        )
    )


CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {
    "Entropy by block and position": ("entropy", draw_entropy),
}
