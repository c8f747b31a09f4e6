"""What is drawn of a long pattern: no peak is lost, and every drawn number is an element of the pattern."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from engine.analysis.tiles import overview, tile, top_keys


@st.composite
def patterns(draw: st.DrawFn) -> Tensor:
    """Causal or not, with peaks, weights so small that they round to nothing, and zeros."""
    rows, columns = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    scores = torch.randn(rows, columns, generator=generator) * draw(st.sampled_from([0.1, 3.0, 30.0]))
    if draw(st.booleans()):
        scores = scores.masked_fill(~torch.ones(rows, columns, dtype=torch.bool).tril(), -torch.inf)
    return torch.softmax(scores, -1)


@st.composite
def windows(draw: st.DrawFn) -> tuple[Tensor, tuple[int, int], tuple[int, int], int]:
    pattern = draw(patterns())
    ends = [sorted((draw(st.integers(0, size - 1)), draw(st.integers(1, size)))) for size in pattern.shape]
    rows, columns = ((first, max(last, first + 1)) for first, last in ends)
    return pattern, rows, columns, draw(st.integers(1, 45))


@settings(deadline=None)
@given(windows())
def test_the_largest_weight_of_a_window_is_drawn_and_every_cell_is_the_weight_it_names(drawn) -> None:
    pattern, rows, columns, side = drawn
    found = tile(pattern, rows, columns, side)
    window = pattern[slice(*rows), slice(*columns)]
    assert found.weight.max() == window.max()
    assert torch.equal(pattern[found.pos, found.key], found.weight)
    assert max(found.weight.shape) <= side
    if max(window.shape) <= side:
        assert torch.equal(found.weight, window)
        assert found.block == (1, 1)


@settings(deadline=None)
@given(windows())
def test_every_cell_is_the_largest_of_its_own_block(drawn) -> None:
    pattern, rows, columns, side = drawn
    found = tile(pattern, rows, columns, side)
    high, wide = found.block
    for (i, j), weight in zip(
        torch.cartesian_prod(*map(torch.arange, found.weight.shape)).view(-1, 2), found.weight.flatten(), strict=True
    ):
        top, left = rows[0] + int(i) * high, columns[0] + int(j) * wide
        block = pattern[top : min(top + high, rows[1]), left : min(left + wide, columns[1])]
        assert weight == block.max()
        assert top <= found.pos[i, j] < top + block.shape[0]
        assert left <= found.key[i, j] < left + block.shape[1]


@settings(deadline=None)
@given(patterns(), st.integers(1, 45))
def test_an_overview_shows_every_peak_and_no_weight_that_is_not_there(pattern: Tensor, side: int) -> None:
    drawn = overview(pattern, side)
    assert drawn.dtype == torch.uint8
    assert max(drawn.shape) <= side
    exact = tile(pattern, (0, pattern.shape[0]), (0, pattern.shape[1]), side)
    assert drawn.shape == exact.weight.shape
    above = drawn.double() / 255 - exact.weight.double()
    assert bool((above > -1e-7).all())  # the rounding of the product in float32
    assert bool((above < 1 / 255 + 1e-7).all())
    assert torch.equal(drawn == 0, exact.weight == 0)
    assert torch.equal(drawn.max() == 255, pattern.max() > 254 / 255)


def test_no_weight_is_too_small_or_too_large_to_be_drawn() -> None:
    rounding = 1 + torch.finfo(torch.float32).eps
    pattern = torch.tensor([[1e-45, 0.0, 1.0, rounding, 1e-30, 0.5]])
    assert overview(pattern).tolist() == [[1, 0, 255, 255, 1, 128]]


def test_an_overview_keeps_the_axes_in_front_and_cuts_both_of_the_last_by_themselves() -> None:
    pattern = torch.rand(3, 2, 200, 10)
    drawn = overview(pattern, 32)
    assert drawn.shape == (3, 2, 29, 10)  # seven rows a cell
    for layer in range(3):
        for head in range(2):
            assert torch.equal(drawn[layer, head], overview(pattern[layer, head], 32))


def test_half_precision_is_drawn_as_it_is() -> None:
    pattern = torch.softmax(torch.randn(9, 9), -1).bfloat16()
    assert torch.equal(tile(pattern, (0, 9), (0, 9)).weight, pattern.float())
    assert torch.equal(overview(pattern, 4), overview(pattern.float(), 4))


@settings(deadline=None)
@given(patterns(), st.integers(1, 45))
def test_the_heaviest_keys_and_the_rest_are_the_whole_row(pattern: Tensor, k: int) -> None:
    found = top_keys(pattern, k)
    assert found.weight.shape[-1] == min(k, pattern.shape[-1])
    assert torch.equal(pattern.gather(-1, found.key), found.weight)
    assert torch.equal(found.weight, pattern.sort(-1, descending=True).values[:, :k])
    assert torch.allclose(found.weight.sum(-1) + found.rest, pattern.sum(-1), atol=1e-6)
    if k >= pattern.shape[-1]:
        assert not found.rest.any()


def test_a_rest_is_as_small_as_the_weights_it_is_made_of() -> None:
    assert top_keys(torch.tensor([[1.0, 1e-12, 2e-12]]), 1).rest.tolist() == pytest.approx([3e-12], rel=1e-6)


@pytest.mark.parametrize(("rows", "columns"), [((0, 9), (0, 5)), ((2, 2), (0, 5)), ((-1, 3), (0, 5)), ((0, 8), (3, 6))])
def test_a_window_outside_the_pattern_is_refused(rows, columns) -> None:
    with pytest.raises(ValueError, match=r"(rows|columns) must be a window inside 0\.\.(8|5)"):
        tile(torch.rand(8, 5), rows, columns)


def test_a_picture_without_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one cell, got 0"):
        overview(torch.rand(4, 4), 0)
