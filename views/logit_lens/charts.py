"""Charts of the page Logit lens, by title: the question and its chart."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt
import pandas as pd

from views.charts.template import PICKED, AltairChart, at_least, colors
from views.core.theme import Shade, ramp

ROW, COLUMN = 26, 60  # CSS pixels of a layer, and of a position at least
BESIDE = 90  # of the axis beside them
POINT = 44  # of a layer whose rank is written
LETTERS = 9  # of a candidate that fit into its cell


def layer_name(layer: int, last: int) -> str:
    return "embedding" if layer == 0 else "output" if layer == last else f"block {layer}"


def with_names(table: pd.DataFrame) -> pd.DataFrame:
    last = table["layer"].max()
    return table.assign(behind=[layer_name(layer, last) for layer in table["layer"]])


def axes(table: pd.DataFrame) -> tuple[alt.Y, list[str]]:
    """The axis of the layers, the output on top, and the names of the positions in their order."""
    last = int(table["layer"].max())
    names = [layer_name(layer, last) for layer in range(last, -1, -1)]
    return alt.Y("behind:N", title="after", sort=names), list(dict.fromkeys(table["position"]))


def cells(table: pd.DataFrame) -> pd.DataFrame:
    """Table with a row for each layer and position: its first candidate, by its number and as `piece`, and all that are
    listed in words."""
    named = with_names(table)
    named["position"] = (named["row"] + 1).astype(str) + " " + named["row_name"]
    named["share"] = named["candidate"] + " " + (100 * named["probability"]).map("{:.1f} %".format)
    listed = named.groupby(["layer", "row"], sort=False)["share"].agg(" · ".join)
    first = named[named["place"] == 1].drop(columns="share").rename(columns={"candidate": "piece", "id": "candidate"})
    return first.merge(listed.rename("listed"), on=["layer", "row"])


def heat_map(table: pd.DataFrame, shade: Shade, value: str, title: str, role: str, tooltip: alt.Tooltip) -> AltairChart:
    shown = cells(table)
    y, positions = axes(shown)
    x = alt.X(
        "position:N",
        title="position",
        sort=positions,
        axis=alt.Axis(labelOverlap=True, labelAngle=-45, labelLimit=90, ticks=False),
    )
    top = 1 if value == "probability" else max(float(shown[value].max()), 1e-9)
    power = 1.0 if value == "probability" else 0.5  # the embedding is far from the output, and would flatten the rest
    scale = alt.Scale(type="pow", exponent=power, range=ramp(shade, role), domain=[0, top])
    colour = alt.Color(f"{value}:Q", title=title, scale=scale)
    told = [alt.Tooltip("behind", title="after"), alt.Tooltip("position"), tooltip]
    told.append(alt.Tooltip("listed", title="most likely"))
    base = alt.Chart(shown, height=alt.Step(ROW)).encode(x=x, y=y, tooltip=told)
    fits = shown["piece"].str.len() <= LETTERS
    shown["written"] = shown["piece"].where(fits, shown["piece"].str[: LETTERS - 1] + "…")
    inks = legible_inks(shade, role)
    shown["ink"] = [inks[round(min(at / top, 1.0) ** power * (len(inks) - 1))] for at in shown[value]]
    letters = base.mark_text(baseline="middle", fontSize=11)
    letters = letters.encode(text="written:N", color=alt.Color("ink:N", scale=None))
    pick = alt.selection_point(name=PICKED, fields=["row", "candidate"], on="click", toggle=False)
    drawn = (base.mark_rect().encode(color=colour).add_params(pick) + letters).resolve_scale(color="independent")
    return at_least(drawn, COLUMN * len(positions) + BESIDE)


def legible_inks(shade: Shade, role: str) -> list[str]:
    """The ink or the ground, whichever stands out more, for each colour of a scale."""
    ink, ground = colors(shade)["ink"], colors(shade)["ground"]
    below = [luminance(color) for color in ramp(shade, role)]
    dark = [contrast(luminance(ink), at) >= contrast(luminance(ground), at) for at in below]
    return [ink if one else ground for one in dark]


def luminance(color: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2, "relative luminance")."""
    parts = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(first: float, second: float) -> float:
    return (max(first, second) + 0.05) / (min(first, second) + 0.05)


def draw_candidates(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """Heat map of the first candidate of `layer` and `row`, coloured by its `probability`."""
    told = alt.Tooltip("probability", format=".4f")
    return heat_map(table, shade, "probability", "probability of the most likely", "probability", told)


def draw_distance(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """Heat map of `kl`."""
    told = alt.Tooltip("kl", format=".4f", title="bits")
    return heat_map(table, shade, "kl", "KL(output ‖ layer), bits", "attention", told)


def draw_depth(table: pd.DataFrame, shade: Shade) -> AltairChart:
    """`probability` by `layer`, with the `rank` at each point."""
    shown = with_names(table).assign(rank=table["rank"].astype(int))
    shown["place"] = shown["rank"].map("{:,}".format)
    x = alt.X("behind:N", title="after", sort=list(shown["behind"]), axis=alt.Axis(labelAngle=0, labelOverlap=True))
    told = [alt.Tooltip("behind", title="after"), alt.Tooltip("probability", format=".4f"), alt.Tooltip("rank")]
    y = alt.Y("probability:Q", title="probability, and rank", scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(shown, height=230).encode(x=x, y=y, tooltip=told)
    color = colors(shade)["probability"]
    line = base.mark_line(color=color) + base.mark_point(color=color, filled=True, size=60)
    return at_least(line + base.mark_text(dy=-12, fontSize=11).encode(text="place:N"), POINT * len(shown) + BESIDE)


CHARTS: dict[str, tuple[str, Callable[[pd.DataFrame, Shade], AltairChart]]] = {
    "Most probable token by layer and position": ("lens", draw_candidates),
    "One candidate through depth": ("depth", draw_depth),
    "Distance from the output": ("lens", draw_distance),
}
