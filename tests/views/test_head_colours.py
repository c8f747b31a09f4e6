"""Twelve heads side by side can be told apart, whoever looks."""

from itertools import combinations

import pytest

from tests.views.test_theme import SHADES, contrast, distance
from views.core.theme import Shade, tokens

HEADS = [f"head-{i}" for i in range(1, 13)]


@pytest.mark.parametrize("shade", SHADES)
def test_every_two_heads_can_be_told_apart_with_and_without_seeing_red_and_green(shade: Shade) -> None:
    colors = tokens()["colors"][shade]
    for a, b in combinations(HEADS, 2):
        assert distance(colors[a], colors[b], False) > 0.12, (a, b)
        assert distance(colors[a], colors[b], True) > 0.09, (a, b)


@pytest.mark.parametrize("shade", SHADES)
def test_a_line_of_any_head_stands_out_from_the_ground(shade: Shade) -> None:
    colors = tokens()["colors"][shade]
    for head in HEADS:
        assert contrast(colors[head], colors["ground"]) > 2.2, head


def test_the_first_head_has_attentions_own_colour() -> None:
    for shade in SHADES:
        assert tokens()["colors"][shade]["head-1"] == tokens()["colors"][shade]["attention"]
