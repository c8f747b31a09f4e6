"""Charts of the page Linear probes, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from views.charts.template import PICKED, AltairChart, at_least, colors
from views.core.theme import Shade, ramp

ROW, COLUMN, BESIDE = 26, 52, 150  # CSS pixels
READABLE = 0.55  # probability above which a cell is dark
LINES = {"accuracy": "probe", "control": "control task", "majority": "most frequent class"}


def layer_axis(table: pd.DataFrame) -> alt.X:
    """The axis of `at`, which `with_places` adds."""
    order = [*dict.fromkeys(with_places(table)["at"])]
    axis = alt.Axis(labelAngle=0, labelOverlap=True)
    return alt.X("at:N", title="residual stream in front of block", sort=order, axis=axis)


def with_places(table: pd.DataFrame) -> pd.DataFrame:
    names = (table["layer"] + 1).astype(str)
    return table.assign(at=names.where(table["layer"] < table["layer"].max(), "behind the last"))


def pick_layer() -> alt.Parameter:
    return alt.selection_point(name=PICKED, fields=["layer"], on="click", toggle=False)


def draw_layers(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`accuracy`, `control` and `majority` by layer; a click on a point chooses its layer."""
    lines = with_places(table).melt(["layer", "stream", "at"], [*LINES], "of", "share")
    lines["of"] = lines["of"].map(LINES)
    palette = [colors(shade)[role] for role in ("residual", "value", "soft")]
    scale = alt.Scale(domain=[*LINES.values()], range=palette)
    base = alt.Chart(lines, height=260).encode(
        x=layer_axis(table),
        y=alt.Y("share:Q", title="share right, held out", scale=alt.Scale(zero=False)),
        color=alt.Color("of:N", title=None, sort=[*LINES.values()], scale=scale),
        tooltip=[alt.Tooltip("stream"), alt.Tooltip("of", title="who"), alt.Tooltip("share", format=".4f")],
    )
    return at_least((base.mark_line() + base.mark_point(filled=True, size=60)).add_params(pick_layer()), 420)


def draw_selectivity(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`selectivity` by layer; a click on a bar chooses its layer."""
    told = [alt.Tooltip("stream"), alt.Tooltip("selectivity", format="+.4f")]
    y = alt.Y("selectivity:Q", title="accuracy less control")
    drawn = alt.Chart(with_places(table), height=200).mark_bar(color=colors(shade)["residual"])
    return at_least(drawn.encode(x=layer_axis(table), y=y, tooltip=told).add_params(pick_layer()), 420)


def draw_removal(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`kl` without each direction, with the change of the loss in words."""
    said = table["kl"].map("{:.4f}".format)
    said = said.where(table["change"].isna(), said + table["change"].map(", loss {:+.4f}".format))
    shown = table.assign(said=said, of=table["direction"].str.partition(" ")[0])
    roles = {"probe": "residual", "control": "value", "random": "soft"}
    color = alt.Color(
        "of:N", legend=None, scale=alt.Scale(domain=[*roles], range=[colors(shade)[one] for one in roles.values()])
    )
    most = max(float(table["kl"].max()), 1e-9)
    told = [
        alt.Tooltip("direction"), alt.Tooltip("kl", format=".5f", title="KL"),
        alt.Tooltip("loss", format=".5f"), alt.Tooltip("change", format="+.5f", title="change of the loss"),
    ]  # fmt: skip
    base = alt.Chart(shown, height=alt.Step(ROW)).encode(
        x=alt.X("kl:Q", title="KL from the whole run, nats a position", scale=alt.Scale(domain=[0, 1.4 * most])),
        y=alt.Y("direction:N", title="without the direction of", sort=[*table["direction"]]),
        tooltip=told,
    )
    return at_least(base.mark_bar().encode(color=color) + base.mark_text(align="left", dx=4).encode(text="said:N"), 480)


def draw_text(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`p` of each class at each token."""
    named = table.assign(place=(table["pos"] + 1).astype(str) + " " + table["token"], dark=table["p"] > READABLE)
    places, classes = [*dict.fromkeys(named["place"])], [*dict.fromkeys(named["class"])]
    axis = alt.Axis(labelAngle=-40, labelLimit=120, ticks=False)
    base = alt.Chart(named, height=alt.Step(ROW)).encode(
        x=alt.X("place:N", title="token", sort=places, axis=axis),
        y=alt.Y("class:N", title=None, sort=classes, axis=alt.Axis(labelLimit=BESIDE, ticks=False)),
        tooltip=[alt.Tooltip("token"), alt.Tooltip("class"), alt.Tooltip("p", format=".4f")],
    )
    scale = alt.Scale(range=ramp(shade, "probability"), domain=[0, 1])
    ink = alt.condition(alt.datum.dark, alt.value(colors(shade)["ground"]), alt.value(colors(shade)["ink"]))
    cells = base.mark_rect().encode(color=alt.Color("p:Q", title="probability", scale=scale))
    letters = base.mark_text(fontSize=11).encode(text=alt.Text("p:Q", format=".2f"), color=ink)
    return at_least(cells + letters, COLUMN * len(places) + BESIDE)


CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {
    "What a probe of each layer has right": ("probe_layers", draw_layers),
    "Selectivity": ("probe_selectivity", draw_selectivity),
    "Without the probe’s direction": ("probe_removal", draw_removal),
    "What the probe reads in this text": ("probe_text", draw_text),
}
