import math

import pytest
import torch

from engine.model.layers.position import (
    alibi_bias,
    alibi_slopes,
    rotate,
    rotation,
    sinusoidal,
)
from engine.model.layers.rotary import unscaled_frequencies
from tests.engine.tiny import normal


@pytest.mark.parametrize("d_model", [6, 7])
def test_sinusoids_are_vaswanis_formula(d_model: int) -> None:
    table = sinusoidal(torch.arange(9), d_model)
    assert table.shape == (9, d_model)
    for pos in range(9):
        for i in range(d_model):
            angle = pos / 10_000 ** ((i - i % 2) / d_model)
            expected = math.cos(angle) if i % 2 else math.sin(angle)
            assert table[pos, i].item() == pytest.approx(expected, abs=1e-6)


def test_rotary_scores_depend_only_on_the_distance() -> None:
    q, k = normal(1, 1, 2, 8, seed=1), normal(1, 1, 2, 8, seed=2)
    frequencies = unscaled_frequencies(8, 10_000.0)

    def score(pos: int, key: int) -> torch.Tensor:
        turned_q = rotate(q, *rotation(torch.tensor([pos]), frequencies))
        turned_k = rotate(k, *rotation(torch.tensor([key]), frequencies))
        return (turned_q * turned_k).sum(-1)

    torch.testing.assert_close(score(7, 4), score(103, 100), atol=1e-5, rtol=0)
    torch.testing.assert_close(score(5, 5), (q * k).sum(-1), atol=1e-5, rtol=0)
    assert (score(7, 4) - score(7, 2)).abs().min() > 1e-3


def test_rotary_turns_each_pair_by_its_own_angle_and_keeps_lengths() -> None:
    x = normal(1, 3, 2, 4)
    turned = rotate(x, *rotation(torch.tensor([0, 1, 2]), unscaled_frequencies(4, 100.0)))
    assert torch.equal(turned[:, 0], x[:, 0])  # position 0 does not turn
    a, b = x[0, 2, 0, [1, 3]].tolist()  # pair 1 at position 2: 2 x 100^(-2/4) = 0.2 radians
    expected = [a * math.cos(0.2) - b * math.sin(0.2), b * math.cos(0.2) + a * math.sin(0.2)]
    assert turned[0, 2, 0, [1, 3]].tolist() == pytest.approx(expected, abs=1e-6)
    torch.testing.assert_close(turned.norm(dim=-1), x.norm(dim=-1))


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (1, [2**-8]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (8, [2**-1, 2**-2, 2**-3, 2**-4, 2**-5, 2**-6, 2**-7, 2**-8]),
        (16, [2 ** -(i / 2) for i in range(1, 17)]),
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),  # 4 heads' slopes, then every other of 8 heads'
    ],
)
def test_alibi_slopes_are_the_papers(heads: int, expected: list[float]) -> None:
    assert alibi_slopes(heads).tolist() == pytest.approx(expected)


def test_alibi_bias_is_minus_slope_times_distance() -> None:
    bias = alibi_bias(torch.tensor([0.5, 0.25]), torch.tensor([2, 3]), torch.arange(4))
    assert bias[0].tolist() == [[-1.0, -0.5, 0.0, -0.5], [-1.5, -1.0, -0.5, 0.0]]
    assert torch.equal(bias[1] * 2, bias[0])
