"""Logits over a wide vocabulary are the same numbers, however the product is made."""

import pytest
import torch
from torch.nn.functional import linear

from engine.layers.head import SLICE, onto_vocabulary
from tests.engine.tiny import normal


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("rows", [7, 4 * SLICE, 4 * SLICE + 5])
@pytest.mark.parametrize("biased", [True, False])
def test_however_many_rows_the_product_is_that_of_float64(biased: bool, rows: int, threads: int) -> None:
    x, weight, bias = normal(2, 9, 16), normal(rows, 16, seed=1), normal(rows, seed=2) if biased else None
    expected = linear(x.double(), weight.double(), None if bias is None else bias.double()).float()
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with torch.no_grad():
            torch.testing.assert_close(onto_vocabulary(x, weight, bias), expected, atol=1e-5, rtol=1e-5)
    finally:
        torch.set_num_threads(before)


def test_a_wide_head_learns_as_a_narrow_one_does() -> None:
    x, weight = normal(1, 3, 4).requires_grad_(), normal(4 * SLICE, 4, seed=1).requires_grad_()
    onto_vocabulary(x, weight, None).sum().backward()
    torch.testing.assert_close(weight.grad, x.detach().sum(1).expand(4 * SLICE, 4))
