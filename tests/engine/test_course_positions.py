"""Positions as hands of clocks, and the angle that RoPE leaves between two vectors."""

import math

import pytest
import torch

from engine.course.positions import angle_between, clock_hands, rotate_to, sinusoidal_table, wavelengths


def test_a_pair_of_a_sinusoidal_vector_is_the_hand_of_a_clock() -> None:
    hands = clock_hands(5, 8)
    assert torch.equal(hands.flatten(), sinusoidal_table(6, 8)[5])
    torch.testing.assert_close(hands.norm(dim=-1), torch.ones(4))
    turned = 2 * math.pi * 5 / wavelengths(8)
    torch.testing.assert_close(hands, torch.stack([turned.sin(), turned.cos()], -1))


def test_rope_leaves_the_angle_where_both_are_moved_by_as_much() -> None:
    q, k = torch.tensor([1.0, 0.5]), torch.tensor([0.5, 1.0])
    assert angle_between(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0])) == pytest.approx(90)
    assert angle_between(torch.tensor([0.0, 2.0]), torch.tensor([1.0, 0.0])) == pytest.approx(-90)
    for moved in (0, 10, 64):
        turned = rotate_to(torch.stack([q, k]), torch.tensor([5, 2]) + moved)
        angle = math.degrees(3) + angle_between(k, q)  # a radian for each token of distance
        assert angle_between(turned[1], turned[0]) == pytest.approx(angle, abs=1e-3)
