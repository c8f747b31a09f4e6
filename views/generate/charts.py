"""Altair charts of the page Generate: next tokens, temperature, the KV cache's costs, accuracy and surprise.

Their data are named: each docstring lists them with their columns.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from engine.analysis.caching import TokenTime
from views.charts.template import AltairChart, colors, head_colors
from views.core.theme import Shade

ROW, BAR = 21, 13  # pixels
POINTS = 700  # bars of the surprise of a text, at most: of a longer one each bar stands for several tokens
TEMPERATURE_STEP, HIGHEST_TEMPERATURE = 0.05, 5.0
COSTS = {  # colour and dashes of each series
    "with the cache": ("attention", [1, 0]),
    "without": ("key", [7, 4]),
    "this model": ("attention", [1, 0]),
    "if every query head had its own": ("value", [2, 3]),
    "GPT-2 small": ("soft", [7, 4]),
}
SHARE = alt.Axis(format="%")
DOT: dict[str, Any] = {"filled": True, "size": 60, "opacity": 1}
WIDE: dict[str, Any] = {"minExtent": 76, "maxExtent": 76}  # pixels of an axis, so that panels stand beneath each other


def named_apart(names: Sequence[str]) -> list[str]:
    """Names of which no two are alike: marks without width tell the same ones apart."""
    return [name + "\u200b" * list(names[:at]).count(name) for at, name in enumerate(names)]


def row_axis(field: str, **axis: Any) -> alt.Y:
    """Rows in the order of the data."""
    look = alt.Axis(ticks=False, domain=False, labelLimit=110, labelPadding=6, labelFontSize=13, **axis)
    return alt.Y(field, title=None, sort=None, axis=look)


def share_bars(base: alt.Chart, color: Any, shade: Shade, room: float = 0.14) -> tuple[alt.Chart, alt.Chart]:
    """Bars of probabilities, and the shares after them, for which there is `room` beyond a whole bar."""
    width = alt.X("probability:Q", axis=None, scale=alt.Scale(domain=[0, 1 + room], nice=False))
    share = base.transform_calculate(share="format(100 * datum.probability, '.3r') + ' %'")
    return (
        base.mark_bar(height=BAR, cornerRadius=2, minBandSize=1).encode(x=width, color=color),
        share.mark_text(align="left", dx=5, color=colors(shade)["ink"]).encode(x=width, text="share:N"),
    )


def next_token_bars(shade: Shade) -> AltairChart:
    """`rows`: token, probability, is_chosen; the most probable first."""
    of = colors(shade)
    base = alt.Chart(alt.NamedData("rows")).encode(
        y=row_axis("token:N"), tooltip=[alt.Tooltip("token:N"), alt.Tooltip("probability:Q", format=".6f")]
    )
    bars, shares = share_bars(base, alt.value(of["probability"]), shade)
    rim = alt.condition("datum.is_chosen", alt.value(of["ink"]), alt.value("transparent"))
    return alt.layer(bars.encode(stroke=rim), shares).properties(height=alt.Step(ROW))


def temperature_chart(rows: int, with_rest: bool, shade: Shade) -> AltairChart:
    """Draws one distribution at the temperature of the chart's slider (the parameter `temperature`), and at all of
    them.

    `curves`: name, row, logit (none of the rest), temperature, probability, row counting to `rows` and, `with_rest`,
    one more. `totals`: temperature, entropy (bits), choices.
    """
    of = colors(shade)
    slider = alt.binding_range(min=0, max=HIGHEST_TEMPERATURE, step=TEMPERATURE_STEP, name="temperature T ")
    at = alt.param("temperature", value=1.0, bind=slider)
    here = f"abs(datum.temperature - {at.name}) < {TEMPERATURE_STEP / 2}"
    hues = head_colors(shade)[:rows] + ([of["negative"]] if with_rest else [])
    color = alt.Color("row:O", scale=alt.Scale(domain=list(range(len(hues))), range=hues), legend=None)
    exact = [
        alt.Tooltip("name:N", title="token"),
        alt.Tooltip("logit:Q", format=".5~g"),
        alt.Tooltip("temperature:Q", format=".2f"),
        alt.Tooltip("probability:Q", format=".6f"),
    ]
    curves = alt.Chart(alt.NamedData("curves")).encode(tooltip=exact)
    x = alt.X(
        "temperature:Q",
        title="temperature T",
        scale=alt.Scale(domain=[0, HIGHEST_TEMPERATURE], nice=False),
        axis=alt.Axis(tickCount=5),
    )
    totals = alt.Chart(alt.NamedData("totals"))
    now = totals.transform_filter(here)
    rule = now.mark_rule(color=of["ink"]).encode(x=x)
    panels = (
        _bars_at(curves.transform_filter(here), now, color, shade).properties(height=ROW * len(hues)),
        _lines_over(curves.encode(x=x, color=color), rule, here).properties(height=190),
        _uncertainty_over(totals.encode(x=x), now, rule, here, shade).properties(height=120),
    )
    return alt.vconcat(*panels, spacing=18, params=[at.param])


def _bars_at(curves: alt.Chart, total: alt.Chart, color: alt.Color, shade: Shade) -> AltairChart:
    """Probability of each row at one temperature, and its logit, under their names."""
    soft = colors(shade)["soft"]
    rows = curves.encode(y=row_axis("name:N", **WIDE))
    logits = rows.transform_filter("isValid(datum.logit)").mark_text(align="right", color=soft)
    over: dict[str, Any] = {"baseline": "bottom", "color": soft}
    heading = total.encode(y=alt.value(-4))
    return alt.layer(
        *share_bars(rows, color, shade, room=0.6),
        logits.encode(x=alt.value("width"), text=alt.Text("logit:Q", format=".5~g")),
        heading.mark_text(align="left", **over).encode(x=alt.value(0), text=alt.value("probability")),
        heading.mark_text(align="right", **over).encode(x=alt.value("width"), text=alt.value("logit")),
    )


def _lines_over(curves: alt.Chart, rule: alt.Chart, here: str) -> AltairChart:
    """Probability of each row over the temperature, with a dot on the rule."""
    share = alt.Y(
        "probability:Q", title="probability", axis=alt.Axis(format="%", **WIDE), scale=alt.Scale(domain=[0, 1])
    )
    lines = curves.encode(y=share)
    dashes = alt.condition("isValid(datum.logit)", alt.value([1, 0]), alt.value([5, 4]))  # the rest is no token
    return alt.layer(
        lines.mark_line(strokeWidth=2).encode(strokeDash=dashes),
        rule,
        lines.transform_filter(here).mark_point(**DOT),
        lines.mark_point(size=120, opacity=0),
    )


def _uncertainty_over(totals: alt.Chart, total: alt.Chart, rule: alt.Chart, here: str, shade: Shade) -> AltairChart:
    """Effective choices over the temperature, with a dot on the rule and what it stands for above."""
    of = colors(shade)
    found = [
        alt.Tooltip("temperature:Q", format=".2f"),
        alt.Tooltip("choices:Q", title="effective choices", format=",.3f"),
        alt.Tooltip("entropy:Q", title="entropy, bits", format=".4f"),
    ]
    choices = alt.Y("choices:Q", title="effective choices", axis=alt.Axis(**WIDE), scale=alt.Scale(domainMin=0))
    line = totals.encode(y=choices, tooltip=found)
    said = "'entropy ' + format(datum.entropy, '.3f') + ' bits · ' + format(datum.choices, ',.2f') + ' choices'"
    label = total.transform_calculate(said=said)
    return alt.layer(
        line.mark_line(color=of["probability"]),
        rule,
        line.transform_filter(here).mark_point(**DOT, color=of["probability"]),
        line.mark_point(size=120, opacity=0),
        label.mark_text(align="left", baseline="bottom", fontWeight=600, color=of["ink"]).encode(
            x=alt.value(0), y=alt.value(-6), text="said:N"
        ),
    )


def cost_chart(
    series: tuple[str, ...], unit: str, longest: int, logarithmic: bool, points: bool, shade: Shade
) -> AltairChart:
    """Draws what a token costs by the length before it. `costs`: series, length, value. `now`: length of a rule."""
    of = colors(shade)
    hues, dashes = [of[COSTS[name][0]] for name in series], [COSTS[name][1] for name in series]
    columns = 1 if len(series) > 2 else 2
    legend = alt.Legend(orient="top", columns=columns, labelLimit=260, symbolType="stroke", symbolSize=300)
    y = alt.Scale(type="log") if logarithmic else alt.Scale(domainMin=0)
    base = alt.Chart(alt.NamedData("costs")).encode(
        x=alt.X("length:Q", title="length, positions", scale=alt.Scale(domain=[1, longest], nice=False)),
        y=alt.Y("value:Q", title=unit, axis=alt.Axis(format="~s", tickCount=6), scale=y),
        color=alt.Color("series:N", title=None, scale=alt.Scale(domain=series, range=hues), legend=legend),
        strokeDash=alt.StrokeDash("series:N", title=None, scale=alt.Scale(domain=series, range=dashes), legend=legend),
        tooltip=[
            alt.Tooltip("series:N"),
            alt.Tooltip("length:Q", format=","),
            alt.Tooltip("value:Q", title=unit, format=",.3f" if points else ","),
        ],
    )
    now = alt.Chart(alt.NamedData("now")).encode(x="length:Q", tooltip=alt.Tooltip("length:Q", title="read now"))
    return (
        alt.layer(
            base.mark_line(strokeWidth=2.5),
            base.mark_point(size=60, filled=True, opacity=1 if points else 0, strokeDash=[1, 0]),
            now.mark_rule(strokeDash=[2, 3], color=of["soft"]),
        )
        .properties(height=230)
        .interactive(bind_y=False)
    )


def cost_frame(lengths: Sequence[int], values: Mapping[str, Sequence[float] | None]) -> pd.DataFrame:
    """Series, length and value, a row each; a series without values is left out."""
    rows = [
        (name, length, float(value))
        for name, column in values.items()
        for length, value in zip(lengths, column or (), strict=column is not None)
    ]
    return pd.DataFrame(rows, columns=["series", "length", "value"])


def time_frame(times: Sequence[TokenTime]) -> pd.DataFrame:
    """Milliseconds of a token at each length that was measured."""
    values = {"with the cache": [1e3 * one.cached for one in times], "without": [1e3 * one.again for one in times]}
    return cost_frame([one.length for one in times], values)


def accuracy_chart(most: int, shade: Shade) -> AltairChart:
    """Right answers over the number of examples, with the standard error. `shares`: K, right, error, queries."""
    hue = colors(shade)["probability"]
    x = alt.X(
        "K:Q", title="examples K", scale=alt.Scale(domain=[0, max(1, most)]), axis=alt.Axis(values=[0, 1, 2, 4, 8])
    )
    y = alt.Y("right:Q", title="right answers", axis=SHARE, scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(alt.NamedData("shares")).encode(
        x=x,
        tooltip=[
            alt.Tooltip("K:Q"),
            alt.Tooltip("right:Q", format=".2%"),
            alt.Tooltip("error:Q", title="± standard error", format=".2%"),
            alt.Tooltip("queries:Q"),
        ],
    )
    ends = base.transform_calculate(low="max(0, datum.right - datum.error)", high="min(1, datum.right + datum.error)")
    return alt.layer(
        base.mark_line(color=hue, aria=False).encode(y=y),
        ends.mark_rule(color=hue, aria=False).encode(y=alt.Y("low:Q", title="right answers"), y2="high:Q"),
        base.mark_point(color=hue, filled=True, size=70, opacity=1, aria=False).encode(y=y),
    ).properties(height=230)


def surprise_chart(bits: float, shade: Shade) -> AltairChart:
    """Surprise of each token along a text as bars, the entropy there as a line; a click selects a token (`token`).

    `tokens`: index, position, until, token, surprise, entropy (bits), is_picked; `windows`: position, from which a
    window predicts. `bits` is the surprise of a blind guess.
    """
    of = colors(shade)
    pick = alt.selection_point(name="token", fields=["index"], on="click", toggle=False)
    x = alt.X("begin:Q", title="position", scale=alt.Scale(zero=False, nice=False), axis=alt.Axis(tickMinStep=1))
    text = alt.Chart(alt.NamedData("tokens"))
    bars = text.transform_calculate(begin="datum.position - 0.4", end="datum.until + 0.4").encode(
        x=x,
        x2="end:Q",
        y=alt.Y("surprise:Q", title="bits", scale=alt.Scale(domainMin=0)),
        y2=alt.Y2(datum=0),
        color=alt.condition("datum.is_picked", alt.value(of["attention"]), alt.value(of["negative"])),
        tooltip=[
            alt.Tooltip("token:N"),
            alt.Tooltip("position:Q"),
            alt.Tooltip("surprise:Q", title="surprise, bits", format=".3f"),
            alt.Tooltip("entropy:Q", title="entropy, bits", format=".3f"),
        ],
    )
    line = text.mark_line(color=of["probability"], strokeWidth=2).encode(x="position:Q", y="entropy:Q")
    blind = alt.Chart(alt.NamedData("tokens")).mark_rule(opacity=0, aria=False).encode(y=alt.datum(bits))
    edges = alt.Chart(alt.NamedData("windows")).mark_tick(color=of["attention"], height=8, yOffset=4, aria=False)
    return (
        alt.layer(
            bars.mark_bar(cursor="pointer").add_params(pick),
            line,
            blind,
            edges.encode(x="position:Q", y=alt.value(190)),
        )
        .properties(height=190)
        .interactive(bind_y=False)
    )


def surprise_frame(tokens: pd.DataFrame, looked: int) -> pd.DataFrame:
    """Keeps at most POINTS rows of `tokens` (index, position, token, surprise, entropy): of several the most
    surprising."""
    size = math.ceil(len(tokens) / POINTS)
    group = tokens["index"] // size
    ends = tokens.groupby(group)["position"]
    best = tokens.loc[tokens.groupby(group)["surprise"].idxmax()]
    bars = best.assign(position=ends.min().to_numpy(), until=ends.max().to_numpy())
    return bars.assign(is_picked=(bars["index"] // size == looked // size).to_numpy())
