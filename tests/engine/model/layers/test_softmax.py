import math

import pytest
import torch

from engine.model.layers.softmax import softmax
from tests.engine.tiny import normal


def test_temperature_divides_the_scores_before_the_exponential() -> None:
    (a, b) = softmax(torch.tensor([1.0, 3.0]), 2.0).tolist()
    expected = 1 / (1 + math.exp((3 - 1) / 2))
    assert a == pytest.approx(expected, abs=1e-6)
    assert b == pytest.approx(1 - expected, abs=1e-6)


def test_each_head_has_a_temperature_of_its_own() -> None:
    scores = normal(2, 3, 4, 4)
    temperature = torch.tensor([0.5, 1.0, 7.0])
    pattern = softmax(scores, temperature[:, None, None])
    for head, value in enumerate(temperature.tolist()):
        torch.testing.assert_close(pattern[:, head], softmax(scores[:, head], value))
    assert pattern[:, 0].max() > pattern[:, 2].max()


def test_a_row_with_nothing_allowed_is_all_zeros_and_leaves_the_other_rows_alone() -> None:
    scores = normal(2, 3)
    blocked = scores.clone()
    blocked[1] = float("-inf")
    pattern = softmax(blocked)
    assert pattern[1].tolist() == [0.0, 0.0, 0.0]
    assert torch.equal(pattern[0], softmax(scores)[0])


def test_a_forbidden_key_gets_exactly_nothing() -> None:
    pattern = softmax(torch.tensor([[2.0, float("-inf"), 1.0]]), 0.1)
    assert pattern[0, 1] == 0
    assert pattern.sum() == pytest.approx(1)


def test_a_row_with_nothing_allowed_learns_nothing_and_spoils_no_other_gradient() -> None:
    scores = normal(3, 4).requires_grad_(True)
    allowed = torch.tensor([[True] * 4, [False] * 4, [True, False, True, False]])
    softmax(torch.where(allowed, scores, float("-inf"))).square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()
    assert not scores.grad[1].any()
    assert scores.grad[0].all()
