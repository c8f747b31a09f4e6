"""Takes one step of gradient descent: what it does to one weight, and what a hundred of them do to a whole model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from engine.model.transformer import Transformer
from engine.runtime import library


@dataclass(frozen=True)
class Slope:
    """A weight of a model, `place` in its matrix, and the gradient there of the mean loss of a text."""

    matrix: str
    place: tuple[int, ...]
    weight: float
    gradient: float


@dataclass(frozen=True)
class GradientStep:
    """A weight before and after w - rate * gradient, and the loss at both. `promised` is what the loss would be
    after it if the gradient were the same all the way."""

    weight: float
    after: float
    loss: float
    loss_after: float
    promised: float


@dataclass(frozen=True)
class StepOfTwo:
    """Two weights before and after w - rate * gradient on both, and the loss at either place."""

    weights: tuple[float, float]
    after: tuple[float, float]
    loss: float
    loss_after: float


def text_loss(model: Transformer, ids: Sequence[int], weights: Mapping[str, Tensor]) -> Tensor:
    """Mean cross-entropy, in nats, of the tokens of a text that are asked for: all but the first. `weights` stand in
    place of those of the model that have their names."""
    read = torch.tensor([list(ids)])
    logits = functional_call(model, dict(weights), (read,))
    return cross_entropy(logits[0, :-1], read[0, 1:])


def find_slopes(name: str, ids: Sequence[int], matrices: Sequence[str]) -> list[Slope]:
    """Finds in each matrix of the model called `name` the weight with the largest gradient."""
    model = library.checkpoint(name).model
    leaves = {matrix: model.get_parameter(matrix).detach().clone().requires_grad_() for matrix in matrices}
    found = torch.autograd.grad(text_loss(model, ids, leaves), list(leaves.values()))
    slopes = []
    for (matrix, leaf), gradient in zip(leaves.items(), found, strict=True):
        # Not torch's unravel_index, which takes a second to load what it needs.
        place = tuple(int(at) for at in np.unravel_index(int(gradient.abs().argmax()), gradient.shape))
        slopes.append(Slope(matrix, place, float(leaf.detach()[place]), float(gradient[place])))
    return slopes


@torch.no_grad()
def loss_along(
    name: str, ids: Sequence[int], matrix: str, place: Sequence[int], weights: Sequence[float]
) -> list[float]:
    """Loss of the text with one weight of the model set to each of `weights`, and all others as they are."""
    model = library.checkpoint(name).model
    moved = model.get_parameter(matrix).detach().clone()
    losses = []
    for weight in weights:
        moved[tuple(place)] = weight
        losses.append(float(text_loss(model, ids, {matrix: moved})))
    return losses


def step_one_weight(name: str, ids: Sequence[int], slope: Slope, rate: float) -> GradientStep:
    """One step of gradient descent on one weight: w - rate * gradient."""
    after = slope.weight - rate * slope.gradient
    loss, loss_after = loss_along(name, ids, slope.matrix, slope.place, [slope.weight, after])
    return GradientStep(slope.weight, after, loss, loss_after, loss - rate * slope.gradient**2)


@torch.no_grad()
def loss_over(
    name: str, ids: Sequence[int], slopes: tuple[Slope, Slope], places: Sequence[tuple[float, float]]
) -> list[float]:
    """Loss of the text with two weights, of different matrices, set to each pair of values, and all others as they
    are."""
    one, other = slopes
    if one.matrix == other.matrix:
        raise ValueError(f"Expected weights of two matrices, got two of {one.matrix}.")
    model = library.checkpoint(name).model
    moved = {slope.matrix: model.get_parameter(slope.matrix).detach().clone() for slope in slopes}
    losses = []
    for values in places:
        for slope, value in zip(slopes, values, strict=True):
            moved[slope.matrix][slope.place] = value
        losses.append(float(text_loss(model, ids, moved)))
    return losses


def step_two_weights(name: str, ids: Sequence[int], slopes: tuple[Slope, Slope], rate: float) -> StepOfTwo:
    """One step of gradient descent on two weights: w - rate * gradient for either."""
    one, other = slopes
    before = one.weight, other.weight
    after = one.weight - rate * one.gradient, other.weight - rate * other.gradient
    return StepOfTwo(before, after, *loss_over(name, ids, slopes, [before, after]))


def descend(
    name: str, ids: Sequence[int], rate: float, steps: int, other: Sequence[int]
) -> tuple[list[float], list[float]]:
    """Losses of a text, and of another that is not learned, before each of `steps` steps on all weights and after the
    last; fewer where a loss is no number any more."""
    model = library.checkpoint(name).model
    weights = {at: weight.detach().clone() for at, weight in model.named_parameters()}
    learned, unlearned = list[float](), list[float]()
    for step in range(steps + 1):
        leaves = {at: weight.requires_grad_() for at, weight in weights.items()}
        loss = text_loss(model, ids, leaves)
        learned.append(float(loss.detach()))
        with torch.no_grad():
            unlearned.append(float(text_loss(model, other, leaves)))
        if step == steps or not (isfinite(learned[-1]) and isfinite(unlearned[-1])):
            break
        gradients = torch.autograd.grad(loss, list(leaves.values()))
        moved = zip(leaves.items(), gradients, strict=True)
        weights = {at: leaf.detach() - rate * gradient for (at, leaf), gradient in moved}
    return learned, unlearned
