"""The look of every chart, made from assets/theme/tokens.json: one theme for Altair, one template for Plotly."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import altair as alt
import plotly.graph_objects as go

from views.core.theme import SERIES, Shade, diverging_scale, ramp, tokens

FONT_SIZE = 12  # px
LEAST = "leastWidth"  # in the `usermeta` of a chart
PICKED = "picked"  # the selection of a chart whose cells are clicked, whose fields are parameters of the page
ALTAIR_ACTIONS = {"export": True, "source": False, "compiled": False, "editor": False}
EMBEDDED = {"embedOptions": {"actions": ALTAIR_ACTIONS, "downloadFileName": "loupe"}}

AltairChart = (
    alt.Chart
    | alt.LayerChart
    | alt.FacetChart
    | alt.RepeatChart
    | alt.ConcatChart
    | alt.HConcatChart
    | alt.VConcatChart
)


@cache
def colors(shade: Shade) -> dict[str, str]:
    """Role -> #rrggbb: `query`, `key`, `value`, `attention`, `residual`, `probability`, `head-1`, ..."""
    return dict(tokens()["colors"][shade])


def head_colors(shade: Shade) -> list[str]:
    """Twelve colours in a fixed order for heads or other nameless series, told apart by colour-blind readers too."""
    return [color for role, color in colors(shade).items() if role.startswith("head-")]


@cache
def altair_theme(shade: Shade) -> dict[str, Any]:
    """Vega-Lite config."""
    of, sans = colors(shade), tokens()["fonts"]["sans"]
    text = {"labelFont": sans, "titleFont": sans, "labelFontSize": FONT_SIZE, "titleFontSize": FONT_SIZE}
    ink = {"labelColor": of["soft"], "titleColor": of["ink"]}
    return {
        "background": of["ground"],
        "font": sans,
        "view": {"stroke": None},
        "axis": {
            **text, **ink, "titleFontWeight": "normal", "domainColor": of["hairline"], "gridColor": of["hairline"],
            "tickColor": of["hairline"], "titlePadding": 8,
        },
        "legend": {**text, **ink, "titleFontWeight": "normal", "orient": "top", "symbolStrokeWidth": 2},
        "header": {**text, **ink},
        "title": {"font": sans, "fontSize": FONT_SIZE + 1, "fontWeight": 600, "color": of["ink"], "anchor": "start"},
        "text": {"font": sans, "fontSize": FONT_SIZE, "color": of["ink"]},
        "mark": {"color": of["attention"]},
        "rule": {"color": of["soft"]},
        "range": {
            "category": [of[role] for role in SERIES],
            "heatmap": ramp(shade, "attention"),
            "ramp": ramp(shade, "attention"),
            "diverging": diverging_scale(shade, "attention"),
        },
    }  # fmt: skip


def apply_altair_theme(chart: AltairChart, shade: Shade) -> AltairChart:
    return chart.configure(**altair_theme(shade)).properties(usermeta=EMBEDDED)


@dataclass(frozen=True)
class ThemedChart:
    """The same for a page: Altair checks the chart, and not the theme anew with each chart, which takes as long."""

    chart: AltairChart
    shade: Shade

    def to_dict(self) -> dict[str, Any]:
        return self.chart.to_dict() | {"config": deepcopy(altair_theme(self.shade)), "usermeta": deepcopy(EMBEDDED)}


def at_least(chart: AltairChart, width: int) -> AltairChart:
    """The chart, not narrower on a page than `width` CSS pixels: where there is less room it scrolls sideways."""
    return chart.properties(usermeta={LEAST: width})


def has_cells_to_pick(chart: AltairChart) -> bool:
    """Tells whether a chart has the selection PICKED."""
    return isinstance(chart.params, list) and any(getattr(one, "name", "") == PICKED for one in chart.params)


def least_width(chart: AltairChart) -> int:
    """Width that `at_least` asked for, 0 where it asked for none."""
    meta = chart.usermeta if isinstance(chart.usermeta, dict) else {}
    return int(meta.get(LEAST, 0))


def pan_and_zoom() -> alt.Parameter:
    """Selection that pans by dragging, zooms by Ctrl + wheel or a pinch, and is reset by a double click.

    The wheel alone scrolls the page.
    """
    return alt.selection_interval(bind="scales", zoom="wheel![event.ctrlKey || event.metaKey]")


@cache
def plotly_template(shade: Shade) -> go.layout.Template:
    of, sans = colors(shade), tokens()["fonts"]["sans"]
    axis = {
        "gridcolor": of["hairline"],
        "linecolor": of["hairline"],
        "zerolinecolor": of["hairline"],
        "tickfont": {"color": of["soft"]},
        "title": {"standoff": 8},
        "automargin": True,
    }
    scene = {"backgroundcolor": of["ground"], "gridcolor": of["hairline"], "zerolinecolor": of["hairline"]}
    even = [step / 9 for step in range(10)]
    return go.layout.Template(
        layout={
            "font": {"family": sans, "size": FONT_SIZE, "color": of["ink"]},
            "paper_bgcolor": of["ground"],
            "plot_bgcolor": of["ground"],
            "colorway": [of[role] for role in SERIES],
            "colorscale": {
                "sequential": list(zip(even, ramp(shade, "attention"), strict=True)),
                "diverging": list(zip(even, diverging_scale(shade, "attention"), strict=True)),
            },
            "xaxis": axis,
            "yaxis": axis,
            "scene": {"xaxis": scene, "yaxis": scene, "zaxis": scene},
            "hoverlabel": {"font": {"family": sans}, "bgcolor": of["panel"], "bordercolor": of["hairline"]},
            "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0},
            "margin": {"l": 48, "r": 16, "t": 32, "b": 44},
        }
    )


def plotly_config(name: str) -> dict[str, Any]:
    """Options of the toolbar: its picture is an SVG called `name`."""
    return {
        "displaylogo": False,
        "scrollZoom": True,
        "toImageButtonOptions": {"format": "svg", "filename": name, "scale": 1},
    }
