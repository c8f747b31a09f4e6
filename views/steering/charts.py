"""Charts of the page Steering, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from views.charts.template import PICKED, AltairChart, at_least, colors
from views.core.theme import Shade

ROW = 24  # CSS pixels of a set
SETS = {"toward": "query", "away": "key"}
COSTS = {"loss": "loss of the texts, a token", "kl": "KL from the plain run, a position"}


def draw_layers(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`apart` by block; a click on a bar chooses its block."""
    told = [alt.Tooltip("hook"), alt.Tooltip("apart", format="+.3f", title="standard deviations")]
    picked = alt.selection_point(name=PICKED, fields=["layer"], on="click", toggle=False)
    drawn = alt.Chart(table.assign(block=table["layer"] + 1), height=200).mark_bar(color=colors(shade)["residual"])
    x = alt.X("block:O", title="block", axis=alt.Axis(labelAngle=0, labelOverlap=True))
    y = alt.Y("apart:Q", title="standard deviations apart")
    return at_least(drawn.encode(x=x, y=y, tooltip=told).add_params(picked), 320)


def draw_prompts(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """Each prompt by `held_out`, or by `value` where no other prompt is there to make a vector of."""
    own = table["held_out"].isna().any()
    title = "along the vector" if own else "along the vector of all other lines"
    color = alt.Color(
        "set:N", title=None, scale=alt.Scale(domain=[*SETS], range=[colors(shade)[one] for one in SETS.values()])
    )
    told = [alt.Tooltip("prompt"), alt.Tooltip("set"), alt.Tooltip("value", format="+.3f", title="along the vector")]
    told.append(alt.Tooltip("held_out", format="+.3f", title="along that of the other lines"))
    base = alt.Chart(table.assign(drawn=table["value" if own else "held_out"]), height=alt.Step(ROW))
    points = base.mark_point(filled=True, size=70, opacity=0.8).encode(
        x=alt.X("drawn:Q", title=title), y=alt.Y("set:N", title=None, sort=[*SETS]), color=color, tooltip=told
    )
    middle = alt.Chart(pd.DataFrame({"at": [0.0]})).mark_rule(strokeDash=[3, 3]).encode(x="at:Q")
    return at_least(middle + points, 420)


def draw_effect(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`mean`, that of the metric, with its 95 % interval, by strength."""
    color = colors(shade)["residual"]
    told = [alt.Tooltip("strength"), *(alt.Tooltip(one, format="+.4f") for one in ("mean", "low", "high"))]
    base = alt.Chart(table, height=220).encode(x=strength_axis(table), tooltip=told)
    band = base.mark_area(opacity=0.2, color=color).encode(y="low:Q", y2="high:Q")
    y = alt.Y("mean:Q", title=str(table["metric"].iloc[0]), scale=alt.Scale(zero=False))
    return at_least(band + base.mark_line(color=color, point={"color": color}).encode(y=y), 420)


def draw_costs(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`loss` and `kl` by strength."""
    lines = table.melt(["strength"], [*COSTS], "of", "nats").dropna()
    lines["of"] = lines["of"].map(COSTS)
    color = alt.Color(
        "of:N",
        title=None,
        scale=alt.Scale(domain=[*COSTS.values()], range=[colors(shade)[one] for one in SETS.values()]),
        legend=alt.Legend(labelLimit=240),
    )
    told = [alt.Tooltip("strength"), alt.Tooltip("of", title="what"), alt.Tooltip("nats", format=".4f")]
    base = alt.Chart(lines, height=180).encode(
        x=strength_axis(table), y=alt.Y("nats:Q", title="nats"), color=color, tooltip=told
    )
    return at_least(base.mark_line() + base.mark_point(filled=True), 420)


def strength_axis(table: pd.DataFrame) -> alt.X:
    return alt.X("strength:Q", title="strength, times the vector", axis=alt.Axis(values=table["strength"].tolist()))


CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {
    "How well both sets separate": ("steering_layers", draw_layers),
    "Each prompt along the vector": ("steering_prompts", draw_prompts),
    "What the vector does": ("steering_effect", draw_effect),
    "What it costs": ("steering_costs", draw_costs),
}
