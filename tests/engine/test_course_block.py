"""The block in four lines against the model’s own, and which of its parts are linear or know the order of rows."""

import pytest
import torch

from engine.course.block import LINES, four_lines, multiply_both_ways, shuffle_gaps, sum_gaps
from engine.runtime import library
from engine.tokenizers.encoding import Encoding

IDS = (5, 9, 40, 7, 9, 12)
HOOKS = ("resid_pre", "norm1.out", "attn.out", "resid_mid", "norm2.out", "mlp.out", "resid_post")


@pytest.mark.parametrize("name", ["everyday", "stories"])  # one with rotary positions, one with learned ones
def test_the_four_lines_are_what_the_model_computes_and_its_maps_alone_are_linear(name: str) -> None:
    layer = library.checkpoint(name).config.layers - 1
    trace = library.traces.trace(name, Encoding.from_ids(IDS))
    lines = four_lines(name, IDS, layer)
    assert len(lines) == len(LINES)
    for line, hook in zip(lines, HOOKS, strict=True):
        torch.testing.assert_close(line, trace[f"blocks.{layer}.{hook}"][0], rtol=1e-4, atol=1e-4)
    gaps = sum_gaps("everyday", IDS, layer=0)
    assert max(gaps["W_Q"], gaps["W_V"]) < 1e-5 and min(gaps["norm"], gaps["attention"], gaps["MLP"]) > 0.05


def test_without_mask_and_positions_attention_knows_no_order() -> None:
    gaps = shuffle_gaps("everyday", IDS, 3)
    assert max(gaps["MLP"], gaps["attention, bare"]) < 1e-5 and min(gaps["attention"], gaps["convolution"]) > 0.05
    rows, columns = multiply_both_ways("everyday", IDS, 3)
    torch.testing.assert_close(rows, columns.T, rtol=1e-4, atol=1e-3)
