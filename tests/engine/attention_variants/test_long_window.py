"""Attention in bands and blocks equals dense attention under the same mask, at the cost its formula says."""

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from engine.attention_variants.blocks import allowed_2d, local_2d, local_2d_cost
from engine.attention_variants.cost import Cost
from engine.attention_variants.full import explicit, explicit_cost, fused_attention, fused_cost
from engine.attention_variants.measure import PeakBytes
from engine.attention_variants.window import sliding_window, window_cost
from engine.model.layers.mask import Blocks, SlidingWindow


def vectors(length: int, batch: int = 2, heads: int = 3, d_head: int = 8) -> tuple[Tensor, Tensor, Tensor]:
    chance = torch.Generator().manual_seed(length)
    q, k, v = torch.randn(3, batch, heads, length, d_head, generator=chance)
    return q, k, v


def dense(q: Tensor, k: Tensor, v: Tensor, allowed: Tensor) -> Tensor:
    scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(~allowed, -torch.inf)
    return scores.softmax(-1) @ v


def counted(compute) -> Cost:
    """Multiply-adds as PyTorch counts them, bytes as they are made and dropped."""
    flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu

    def flops(q, k, *_, **__) -> int:
        return 4 * q[0] * q[1] * q[2] * k[2] * q[3]

    with FlopCounterMode(display=False, custom_mapping={flash: flops}) as flop:
        compute()
    with PeakBytes() as seen:
        compute()
    return Cost(flop.get_total_flops() // 2, seen.peak)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("length", "window"), [(1, 1), (7, 3), (64, 32), (100, 1), (100, 33), (130, 64), (50, 500)])
def test_a_window_is_dense_attention_with_far_keys_masked(length: int, window: int, causal: bool) -> None:
    q, k, v = vectors(length)
    pos = torch.arange(length)
    allowed = SlidingWindow(window).allows(pos, pos)
    allowed = allowed.tril() if causal else allowed
    torch.testing.assert_close(
        sliding_window(q, k, v, window, causal=causal), dense(q, k, v, allowed), atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("length", "window"), [(200, 5), (200, 50), (96, 32)])
def test_a_windows_cost_is_its_formula(length: int, window: int, causal: bool) -> None:
    q, k, v = vectors(length, batch=1)
    found = counted(lambda: sliding_window(q, k, v, window, causal=causal))
    assert found == window_cost(length, 3, 8, window, causal=causal)


def test_nothing_as_large_as_the_square_of_the_length_is_made() -> None:
    q, k, v = vectors(8192, batch=1, heads=1)
    with PeakBytes() as seen:
        sliding_window(q, k, v, 16)
    assert seen.peak < 8192 * 8192 / 4  # bytes: not even a bit for each pair twice


def test_a_window_without_the_query_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1 position, the query's own, got 0"):
        sliding_window(*vectors(4), 0)


SIZES = [
    ((6, 8), (3, 4), (0, 0)),
    ((6, 8), (2, 2), (1, 1)),
    ((7, 5), (3, 2), (2, 1)),
    ((5, 9), (4, 4), (3, 5)),
    ((1, 12), (1, 4), (0, 2)),
]


def looked_at(grid: tuple[int, int], block: tuple[int, int], margin: tuple[int, int], causal: bool) -> Tensor:
    """Pixel by pixel, as Parmar et al. describe it."""
    pixels = [(row, column) for row in range(grid[0]) for column in range(grid[1])]
    generated = sorted(pixels, key=lambda p: (p[0] // block[0], p[1] // block[1], p[0], p[1]))
    when = {pixel: number for number, pixel in enumerate(generated)}
    allowed = torch.zeros(len(pixels), len(pixels), dtype=torch.bool)
    for i, (row, column) in enumerate(pixels):
        top, left = row // block[0] * block[0], column // block[1] * block[1]
        bottom = top + block[0] + (0 if causal else margin[0])
        for j, (other, beside) in enumerate(pixels):
            inside = top - margin[0] <= other < bottom and left - margin[1] <= beside < left + block[1] + margin[1]
            allowed[i, j] = inside and (not causal or when[other, beside] <= when[row, column])
    return allowed


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("grid", "block", "margin"), SIZES)
def test_local_2d_is_dense_attention_inside_memory_blocks(grid, block, margin, causal: bool) -> None:
    q, k, v = vectors(grid[0] * grid[1])
    allowed = looked_at(grid, block, margin, causal)
    assert torch.equal(allowed_2d(grid, block, margin, causal=causal), allowed)
    z = local_2d(q, k, v, grid, block, margin, causal=causal)
    torch.testing.assert_close(z, dense(q, k, v, allowed), atol=1e-5, rtol=0)


def test_blocks_without_a_margin_are_those_of_the_models_mask() -> None:
    pos = torch.arange(1, 50)  # of the patches; 0 is [CLS]
    assert torch.equal(allowed_2d((7, 7), (3, 3)), Blocks(side=7, block=3).allows(pos, pos))


@pytest.mark.parametrize("causal", [True, False])
def test_the_cost_of_blocks_is_their_formula(causal: bool) -> None:
    q, k, v = vectors(32 * 32, batch=1, d_head=32)
    found = counted(lambda: local_2d(q, k, v, (32, 32), (8, 8), (4, 4), causal=causal))
    formula = local_2d_cost((32, 32), 3, 32, (8, 8), (4, 4), causal=causal)
    assert found.multiply_adds == formula.multiply_adds
    assert formula.bytes <= found.bytes < 1.1 * formula.bytes  # the padded image is there a moment longer


def test_the_costs_of_full_attention_are_their_formulas() -> None:
    q, k, v = vectors(90, batch=1)
    assert counted(lambda: explicit(q, k, v)) == explicit_cost(90, 3, 8)
    assert counted(lambda: fused_attention(q, k, v)) == fused_cost(90, 3, 8)
    torch.testing.assert_close(explicit(q, k, v), fused_attention(q, k, v), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("grid", "block", "margin", "message"),
    [((3, 4), (2, 2), (0, 0), "3 x 4 has 12 pixels, got 16"), ((4, 4), (0, 2), (0, 0), "at least 1 x 1")],
)
def test_sizes_that_do_not_fit_are_one_sentence(grid, block, margin, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        local_2d(*vectors(16), grid, block, margin)
