"""The look of charts: every shade's colours are the tokens', and both libraries accept them."""

import json
import re

import altair as alt
import pandas as pd
import plotly.graph_objects as go
import pytest
from altair.utils.schemapi import SchemaValidationError

from views.charts.standalone import chart_file
from views.charts.template import (
    ThemedChart,
    altair_theme,
    apply_altair_theme,
    at_least,
    colors,
    head_colors,
    plotly_template,
)
from views.core.theme import Shade, tokens


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_the_altair_theme_is_valid_and_made_of_the_tokens(shade: Shade) -> None:
    chart = alt.Chart(pd.DataFrame({"x": [1], "y": [2]})).mark_point().encode(x="x:Q", y="y:Q")
    spec = apply_altair_theme(chart, shade).to_dict()  # validates against the schema of Vega-Lite
    of = tokens()["colors"][shade]
    assert spec["config"]["background"] == of["ground"] and spec["config"]["axis"]["titleColor"] == of["ink"]
    assert spec["config"]["range"]["category"][0] == of["attention"]
    assert altair_theme("light") != altair_theme("dark")
    named = at_least(alt.layer(chart.properties(data=alt.NamedData("rows"))).configure_view(stroke="red"), 300)
    themed = ThemedChart(named, shade)
    with alt.theme.enable("none"):  # as Streamlit does
        assert themed.to_dict() == apply_altair_theme(named, shade).to_dict()
    themed.to_dict()["config"]["view"]["stroke"] = "red"  # what Streamlit does with its own is no other chart's
    assert themed.to_dict()["config"]["view"] == {"stroke": None}
    with pytest.raises(SchemaValidationError):
        ThemedChart(chart.encode(x=alt.X("x:Q").stack("nonsense")), shade).to_dict()


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_the_plotly_template_is_valid_and_made_of_the_tokens(shade: Shade) -> None:
    figure = go.Figure(go.Scatter(x=[1], y=[2])).update_layout(template=plotly_template(shade))
    of = tokens()["colors"][shade]
    assert figure.layout.template.layout.paper_bgcolor == of["ground"]
    assert figure.layout.template.layout.colorway[0] == of["attention"]


def test_heads_have_twelve_different_colours_in_either_shade() -> None:
    for shade in ("light", "dark"):
        assert len(set(head_colors(shade))) == 12 and set(head_colors(shade)) <= set(colors(shade).values())


def test_a_file_of_charts_holds_both_shades_the_libraries_and_tables_as_text() -> None:
    text = chart_file(
        "Two <charts>",
        [
            lambda _: alt.Chart(pd.DataFrame({"x": [1], "y": [2]})).mark_point().encode(x="x:Q", y="y:Q"),
            lambda _: go.Figure(go.Scatter(x=[1], y=[2])),
        ],
        caption=["In Loupe: /checkpoint?model=<b>", ""],
        tables={"near": {"token": ["</td><script>", "b"], "cosine": [0.5, 0.25]}},
    )
    given = re.search(r'<script type="application/json" id="given">(.*?)</script>', text)
    assert given
    vega, plotly = json.loads(given[1])
    assert (vega["library"], plotly["library"]) == ("vega", "plotly")
    for shade in ("light", "dark"):
        ground = tokens()["colors"][shade]["ground"]
        assert vega[shade]["config"]["background"] == ground
        assert plotly[shade]["layout"]["template"]["layout"]["paper_bgcolor"] == ground
    assert "window.vegaEmbed" in text and "plotly.js" in text and "<td>&lt;/td&gt;&lt;script&gt;</td>" in text
    assert "Two &lt;charts&gt;" in text and "default-src &#x27;none&#x27;" in text
    assert not re.search(r'<(script|link|img)[^>]*(src|href)="http', text)
