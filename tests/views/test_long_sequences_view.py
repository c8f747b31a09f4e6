"""The charts of long sequences hold what was measured, and the formulas through the last point."""

import numpy as np
import pytest
import torch

from engine.long.compare import Searched
from engine.long.cost import Cost
from engine.long.kept import keep
from engine.long.measure import KINDS, Point, Setup, cost
from views.long_sequences import caption, cost_chart, formats, formula_rows, measured_rows, pattern_figure, search_table

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


@pytest.mark.parametrize("what", ["seconds", "bytes"])
def test_a_chart_shows_every_point_inside_its_axes(what: str) -> None:
    measured, formula = measured_rows(points()), formula_rows(points(), LENGTHS, FORMULAS)
    chart = cost_chart(measured, formula, what).to_dict()
    low, high = chart["layer"][1]["encoding"]["y"]["scale"]["domain"]
    shown = [row[what] for rows in chart["datasets"].values() for row in rows if row[what] is not None]
    assert len(shown) == len(measured) + formula[what].notna().sum()
    assert low <= min(shown) and max(shown) <= high


def test_a_pattern_is_its_tensor_and_the_ground_elsewhere() -> None:
    pattern = torch.tensor([[1.0, 0.0], [0.25, 0.75]])
    part = keep(pattern, torch.tensor([[True, True], [False, True]]))
    shown = np.array(pattern_figure(part).data[0].z)
    np.testing.assert_array_equal(shown, [[1.0, np.nan], [np.nan, 1.0]])
    assert caption(part, "window") == "**window**  \nkeeps 87.5% of the attention in 66.7% of the cells"


def test_the_table_has_a_row_a_search_and_a_format_a_number() -> None:
    table = search_table([Searched("exact", {8: 1.0, 16: 0.5}, Cost(1000, 4, 7), 2e-6, 3_000_000)])
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
    assert set(formats(table)) == set(table.columns[1:])
