"""Charts of the page Generate: what the colours, dashes and figures in them say."""

import re
from typing import Any

import pandas as pd
import vl_convert

from views.charts.template import AltairChart, colors
from views.generate.charts import cost_chart, cost_frame, next_token_bars, temperature_chart


def svg_of(chart: AltairChart, **data: pd.DataFrame) -> str:
    spec = chart.to_dict() | {"datasets": {name: frame.to_dict("records") for name, frame in data.items()}}
    return vl_convert.vegalite_to_svg(spec)


def encodings(spec: Any, channel: str) -> list[Any]:
    """Encodings of a channel, in all layers and panels."""
    if isinstance(spec, list):
        return [one for part in spec for one in encodings(part, channel)]
    if not isinstance(spec, dict):
        return []
    own = [spec["encoding"][channel]] if channel in spec.get("encoding", {}) else []
    return own + [one for name in ("layer", "vconcat") for one in encodings(spec.get(name), channel)]


def test_bars_of_next_tokens_have_the_colour_of_probability_and_the_chosen_one_a_rim() -> None:
    rows = pd.DataFrame({"token": ["v", "h"], "probability": [0.9911, 0.000438], "is_chosen": [True, False]})
    svg, of = svg_of(next_token_bars("light"), rows=rows), colors("light")
    bars = [one for one in svg.split("<path") if 'aria-roledescription="bar"' in one]
    assert len(bars) == 2 and all(of["probability"] in one for one in bars)
    assert [of["ink"] in one for one in bars] == [True, False]
    assert "99.1 %" in svg and "0.0438 %" in svg


def test_the_legend_of_costs_shows_the_dashes_of_the_lines() -> None:
    series = ("with the cache", "without")
    svg = svg_of(
        cost_chart(series, "multiply-adds", 9, False, False, "light"),
        costs=cost_frame([1, 9], {name: [1, 2] for name in series}),
        now=pd.DataFrame({"length": [4]}),
    )
    symbols = re.findall(r'role-legend-symbol.*?<path [^>]*d="([^"]*)"([^>]*)', svg)
    assert len(symbols) == 2 and not any("A" in shape for shape, _ in symbols), "lines, no circles"
    assert ["7,4" in look for _, look in symbols] == [False, True]


def test_the_share_of_all_other_tokens_is_a_dashed_line_and_both_columns_have_a_title() -> None:
    spec = temperature_chart(2, True, "light").to_dict()
    (dashes,) = encodings(spec, "strokeDash")
    assert dashes["condition"] == {"test": "isValid(datum.logit)", "value": [1, 0]} and dashes["value"] == [5, 4]
    texts = [one.get("value") for one in encodings(spec, "text")]
    assert "probability" in texts and "logit" in texts
