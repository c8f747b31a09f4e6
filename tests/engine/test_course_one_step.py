"""One step of learning: against torch.optim.SGD, and against the slope's own definition."""

from copy import deepcopy

import pytest
import torch
from torch.nn.functional import cross_entropy

from engine.course.one_step import descend, find_slopes, loss_along, loss_over, step_one_weight, step_two_weights
from engine.runtime import library

MODEL = "stories"
IDS = (5, 9, 40, 7, 9)
OTHER = (5, 40, 9, 12)
MATRICES = ("embed.tokens.weight", "blocks.0.mlp.out.weight")


def losses_by_sgd(rate: float, steps: int) -> tuple[list[float], list[float]]:
    """The same by PyTorch's optimiser, on a copy of the model."""
    model = deepcopy(library.checkpoint(MODEL).model)
    for weight in model.parameters():
        weight.requires_grad_()
    optimiser = torch.optim.SGD(model.parameters(), lr=rate)
    learned, other = list[float](), list[float]()
    for step in range(steps + 1):
        loss, unlearned = (cross_entropy(model(read)[0, :-1], read[0, 1:]) for read in map(batch, (IDS, OTHER)))
        learned.append(loss.item())
        other.append(unlearned.item())
        if step < steps:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return learned, other


def batch(ids: tuple[int, ...]) -> torch.Tensor:
    return torch.tensor([ids])


def test_many_steps_are_those_of_sgd_and_leave_the_model_as_it_was() -> None:
    before = library.checkpoint(MODEL).model.get_parameter(MATRICES[0]).clone()
    for found, expected in zip(descend(MODEL, IDS, 0.05, 4, OTHER), losses_by_sgd(0.05, 4), strict=True):
        assert found == pytest.approx(expected, rel=1e-4)
    assert torch.equal(library.checkpoint(MODEL).model.get_parameter(MATRICES[0]), before)
    learned, other = descend(MODEL, IDS, 1e4, 50, OTHER)
    assert len(learned) == len(other) < 51  # it ends where a loss is no number any more


def test_the_slope_of_a_weight_is_that_of_the_loss_along_it() -> None:
    for slope in find_slopes(MODEL, IDS, MATRICES):
        gap = 1e-2
        low, high = loss_along(MODEL, IDS, slope.matrix, slope.place, [slope.weight - gap, slope.weight + gap])
        assert slope.gradient == pytest.approx((high - low) / (2 * gap), rel=0.02)
        step = step_one_weight(MODEL, IDS, slope, 0.1)
        assert step.after == pytest.approx(slope.weight - 0.1 * slope.gradient)
        assert step.loss_after < step.loss and step.promised == pytest.approx(step.loss - 0.1 * slope.gradient**2)


def test_the_valley_of_two_weights_has_the_curve_of_each_in_it_and_the_step_is_the_gradients() -> None:
    one, other = find_slopes(MODEL, IDS, MATRICES)
    along = [one.weight - 1, one.weight, one.weight + 1]
    row = loss_over(MODEL, IDS, (one, other), [(weight, other.weight) for weight in along])
    assert row == pytest.approx(loss_along(MODEL, IDS, one.matrix, one.place, along))
    column = loss_over(MODEL, IDS, (one, other), [(one.weight, other.weight + 1)])
    assert column == pytest.approx(loss_along(MODEL, IDS, other.matrix, other.place, [other.weight + 1]))
    step = step_two_weights(MODEL, IDS, (one, other), 0.01)
    assert step.after == pytest.approx((one.weight - 0.01 * one.gradient, other.weight - 0.01 * other.gradient))
    promised = 0.01 * (one.gradient**2 + other.gradient**2)
    assert step.loss - step.loss_after == pytest.approx(promised, rel=0.1)
    with pytest.raises(ValueError, match="two matrices"):
        loss_over(MODEL, IDS, (one, one), [])
