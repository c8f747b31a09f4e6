"""The look of charts: every shade's colours are the tokens', and both libraries accept them."""

import altair as alt
import pandas as pd
import plotly.graph_objects as go
import pytest

from views.charts.template import altair_theme, apply_altair_theme, colors, head_colors, plotly_template
from views.core.theme import Shade, tokens


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_the_altair_theme_is_valid_and_made_of_the_tokens(shade: Shade) -> None:
    chart = alt.Chart(pd.DataFrame({"x": [1], "y": [2]})).mark_point().encode(x="x:Q", y="y:Q")
    spec = apply_altair_theme(chart, shade).to_dict()  # validates against the schema of Vega-Lite
    of = tokens()["colors"][shade]
    assert spec["config"]["background"] == of["ground"] and spec["config"]["axis"]["titleColor"] == of["ink"]
    assert spec["config"]["range"]["category"][0] == of["attention"]
    assert altair_theme("light") != altair_theme("dark")


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_the_plotly_template_is_valid_and_made_of_the_tokens(shade: Shade) -> None:
    figure = go.Figure(go.Scatter(x=[1], y=[2])).update_layout(template=plotly_template(shade))
    of = tokens()["colors"][shade]
    assert figure.layout.template.layout.paper_bgcolor == of["ground"]
    assert figure.layout.template.layout.colorway[0] == of["attention"]


def test_heads_have_twelve_different_colours_in_either_shade() -> None:
    for shade in ("light", "dark"):
        assert len(set(head_colors(shade))) == 12 and set(head_colors(shade)) <= set(colors(shade).values())
