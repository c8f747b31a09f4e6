"""Tensors that files hold and Loupe computes: each is dropped only where both are equal.

Equal is up to the rounding of the type that a file stores; masks and position ids are equal exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.model.config import ModelConfig
from engine.model.layers.position import sinusoidal
from engine.model.layers.rotary import rotary_frequencies

Compute = Callable[[Tensor, ModelConfig, int], Tensor]
ROUNDING = 2**-6  # of frequencies, which files of bfloat16 hold with three digits
MASKED = -1e4  # a score that no softmax lets through


@dataclass(frozen=True)
class RecomputedTensor:
    """`compute` makes the values that a stored tensor must have, of that tensor, the config and the layer."""

    label: str
    compute: Compute
    relative: float = 0.0
    absolute: float = 0.0

    def equals(self, stored: Tensor, config: ModelConfig, layer: int) -> bool:
        try:
            expected = self.compute(stored, config, layer)
        except (RuntimeError, IndexError):  # of a shape that it cannot have
            return False
        if expected.shape != stored.shape:
            return False
        return torch.allclose(stored.double(), expected.double(), rtol=self.relative, atol=self.absolute)


def causal_mask(stored: Tensor, config: ModelConfig, layer: int) -> Tensor:
    return torch.ones_like(stored).tril()


def windowed_mask(stored: Tensor, config: ModelConfig, layer: int) -> Tensor:
    """GPT-Neo's: a layer with a window sees that many positions, its own among them."""
    window, windowed = config.attention.window, config.attention.windowed
    mask = causal_mask(stored, config, layer)
    if window is None or (windowed is not None and layer not in windowed):
        return mask
    return mask.bool().logical_and(~mask.tril(-window).bool()).to(stored.dtype)


def frequencies(stored: Tensor, config: ModelConfig, layer: int) -> Tensor:
    return rotary_frequencies(config.d_turned, config.positions.of_layer(layer))[0]


def sinusoids(stored: Tensor, config: ModelConfig, layer: int) -> Tensor:
    return sinusoidal(torch.arange(stored.shape[0]), config.d_model, config.positions.pairs)


CAUSAL_MASK = RecomputedTensor("the causal mask", causal_mask)
WINDOWED_MASK = RecomputedTensor("the causal mask and its window", windowed_mask)
MASK_VALUE = RecomputedTensor(
    "a score that masks", lambda stored, *_: stored.float().clamp(max=MASKED).to(stored.dtype)
)
POSITION_IDS = RecomputedTensor("0, 1, 2, ...", lambda stored, *_: torch.arange(stored.shape[-1]).expand_as(stored))
FREQUENCIES = RecomputedTensor("the rotary frequencies of its config", frequencies, relative=ROUNDING)
SAME_FREQUENCIES = RecomputedTensor("the rotary frequencies of its config", frequencies, relative=2**-20)  # as used
SAVED_FREQUENCIES = RecomputedTensor("the rotary frequencies", frequencies, relative=2**-20)  # which files must hold
SINUSOIDS = RecomputedTensor("the sinusoids", sinusoids, absolute=2**-11)
