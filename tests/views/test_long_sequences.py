"""The charts of long sequences hold what was measured, and the formulas through the last point."""

import numpy as np
import pytest
import torch

from engine.attention_variants.compare import SearchMeasurement
from engine.attention_variants.cost import Cost
from engine.attention_variants.kept_share import keep
from engine.attention_variants.measure import KINDS, Point, Setup, cost
from views.charts.template import apply_altair_theme, colors
from views.core.payload import unpack
from views.core.theme import Shade
from views.long_sequences.charts import draw_costs, formula_rows, measured_rows, search_table
from views.long_sequences.patterns import kept_patterns

LENGTHS = (256, 512, 1024)
FORMULAS = {kind: [cost(kind, length, 4, 32, 128, Setup()) for length in LENGTHS] for kind in KINDS}


def points() -> list[Point]:
    return [
        Point(kind, length, 0.001 * (i + 1), 1000 * (i + 1), FORMULAS[kind][i])
        for kind in ("fused", "window")
        for i, length in enumerate(LENGTHS[:2])
    ]


def test_points_are_the_measurements() -> None:
    rows = measured_rows(points())
    assert rows["seconds"].tolist() == [0.001, 0.002, 0.001, 0.002]
    assert rows["bytes"].tolist() == [1000, 2000, 1000, 2000]
    assert rows["kind"].tolist() == ["full, fused"] * 2 + ["window"] * 2


def test_a_curve_of_time_goes_through_the_longest_point_and_grows_as_the_formula() -> None:
    rows = formula_rows(points(), LENGTHS, FORMULAS).set_index(["kind", "length"])
    assert rows.loc[("full, fused", 512), "seconds"] == pytest.approx(0.002)
    assert rows.loc[("full, fused", 1024), "seconds"] == pytest.approx(0.008)
    assert rows.loc[("window", 1024), "seconds"] == pytest.approx(0.004, rel=0.01)
    assert np.isnan(rows.loc[("2-D blocks", 512), "seconds"])
    assert rows.loc[("full, explicit", 1024), "bytes"] == 2 * 4 * 1024**2 * 4


@pytest.mark.parametrize("shade", ["light", "dark"])
def test_a_chart_has_every_point_with_its_formula_and_each_kind_keeps_its_hue_and_shape(shade: Shade) -> None:
    measured, formula = measured_rows(points()), formula_rows(points(), LENGTHS, FORMULAS)
    chart = draw_costs(measured, formula, "seconds", list(KINDS))
    spec = apply_altair_theme(chart.figure(shade), shade).to_dict()  # validates against the schema
    dashes, dots = (spec["datasets"][layer["data"]["name"]] for layer in spec["layer"])
    assert [(dot["kind"], dot["length"], dot["seconds"]) for dot in dots] == [
        ("full, fused", 256, 0.001),
        ("full, fused", 512, 0.002),
        ("window", 256, 0.001),
        ("window", 512, 0.002),
    ]
    assert [dot["seconds by formula"] for dot in dots if dot["length"] == 512] == [pytest.approx(0.002)] * 2
    assert {dash["kind"] for dash in dashes} == {"full, fused", "window"}  # without a point there is no rate
    encoding = spec["layer"][1]["encoding"]
    assert encoding["x"]["scale"]["type"] == encoding["y"]["scale"]["type"] == "log"
    hue = dict(zip(encoding["color"]["scale"]["domain"], encoding["color"]["scale"]["range"], strict=True))
    assert list(hue) == list(KINDS.values()) and len(set(encoding["shape"]["scale"]["range"])) == len(KINDS)
    alone = draw_costs(measured, formula, "bytes", ["window"]).figure(shade).to_dict()["layer"][1]["encoding"]["color"]
    assert alone["scale"]["range"] == [hue["window"]] == [colors(shade)["residual"]]


def test_the_payload_has_each_pattern_with_nothing_where_a_query_may_not_look() -> None:
    pattern = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    part = keep(pattern, torch.tensor([[True, True], [False, True]]))
    header, arrays = unpack(
        kept_patterns({"window": part}, heads=(1, 1), shown=(0, 0), pieces=["a", "b"], grid=(1, 2), notes={})
    )
    np.testing.assert_array_equal(arrays["pattern.window"].data, np.float32([[1.0, np.nan], [np.nan, 1.0]]))
    assert arrays["pattern.window"].dims == ("query", "key")
    assert header["kept"] == [{"name": "window", "title": "window", "mass": 0.875, "cells": pytest.approx(2 / 3)}]


def test_the_table_has_a_row_a_search() -> None:
    table = search_table([SearchMeasurement("exact", {8: 1.0, 16: 0.5}, Cost(1000, 4, 7), 2e-6, 3_000_000)])
    assert table.to_dict("records") == [
        {
            "search": "exact",
            "recall@8": 1.0,
            "recall@16": 0.5,
            "multiply-adds a query": 1000,
            "look-ups a query": 7,
            "µs a query": 2.0,
            "kept, MB": 3.0,
        }
    ]
