"""How fast each pair of a head turns, and the published ways to make a model read further than it was trained.

All return radians a token, turned/2, and what cos and sin are multiplied by.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from engine.model.config import Patches, Positions, RotaryScaling
from engine.model.layers.position import Rotation, Rotations, rotation

Frequencies = tuple[Tensor, float]


class Rotary(nn.Module):
    """Rotations of queries and keys, of the layers of one scheme."""

    frequencies: Tensor

    def __init__(self, turned: int, positions: Positions) -> None:
        super().__init__()
        self.turned, self.positions = turned, positions
        frequencies, self.stretch = rotary_frequencies(turned, positions)
        self.register_buffer("frequencies", frequencies, persistent=False)

    def forward(self, pos: Tensor, length: int, dtype: torch.dtype) -> Rotations:
        """cos and sin at the positions `pos` of a text of `length`, of both where tokens have two."""
        if pos.dim() == 3:
            return self.turn(pos[0], length, dtype), self.turn(pos[1], length, dtype)
        return self.turn(pos, length, dtype)

    def turn(self, pos: Tensor, length: int, dtype: torch.dtype) -> Rotation:
        frequencies, stretch = self.frequencies, self.stretch
        if depends_on_length(self.positions):
            made, stretch = rotary_frequencies(self.turned, self.positions, length)
            frequencies = made.to(pos.device)
        cos, sin = rotation(pos, frequencies, self.positions.pairs, stretch)
        return cos.to(dtype), sin.to(dtype)


class GridRotary(Rotary):
    """Rotations of the patches of a picture, by row and column."""

    angles: Tensor

    def __init__(self, turned: int, positions: Positions, patches: Patches) -> None:
        super().__init__(turned, positions)
        self.register_buffer("angles", grid_angles(turned, positions.theta, patches), persistent=False)

    def turn(self, pos: Tensor, length: int, dtype: torch.dtype) -> Rotation:
        angles = self.angles[pos].repeat(1, 2)
        return angles.cos().to(dtype), angles.sin().to(dtype)


def grid_angles(turned: int, theta: float, patches: Patches) -> Tensor:
    """pos turned/2: angles of the pairs of each patch, half of them by its row and half by its column; 0 of what stands
    before the patches (Siméoni et al. 2025, section 3.2)."""
    places = torch.arange(0.5, patches.side, dtype=torch.float32, device="cpu") / patches.side * 2 - 1
    where = torch.cartesian_prod(places, places)  # patch (row column)
    frequencies = theta ** -torch.arange(0, 1, 4 / turned, dtype=torch.float32, device="cpu")
    angles = (2 * math.pi * where[:, :, None] * frequencies).flatten(1)
    return torch.cat([angles.new_zeros(patches.before, turned // 2), angles])


def rotary_frequencies(turned: int, positions: Positions, length: int = 0) -> Frequencies:
    """Su et al. 2021, section 3.4, under `positions.scaling`; `length`, what is read now, matters to two kinds."""
    scaling = positions.scaling
    if scaling is None:
        return unscaled_frequencies(turned, positions.theta), 1.0
    made, attention = KINDS[scaling.kind](turned, positions.theta, scaling, length)
    return made, attention if scaling.attention is None else scaling.attention


def depends_on_length(positions: Positions) -> bool:
    return positions.scaling is not None and positions.scaling.kind in ("dynamic", "longrope")


def unscaled_frequencies(turned: int, theta: float) -> Tensor:
    even = torch.arange(0, turned, 2, dtype=torch.float32, device="cpu")
    return theta ** (-even / turned)


def linear(turned: int, theta: float, scaling: RotaryScaling, length: int) -> Frequencies:
    return unscaled_frequencies(turned, theta) / scaling.factor, 1.0


def dynamic(turned: int, theta: float, scaling: RotaryScaling, length: int) -> Frequencies:
    """NTK-aware: theta grows once more than the trained positions are read, so that the slowest pair is stretched."""
    stretch = scaling.factor * max(length, scaling.trained) / scaling.trained - (scaling.factor - 1)
    return unscaled_frequencies(turned, theta * stretch ** (turned / (turned - 2))), 1.0


def yarn(turned: int, theta: float, scaling: RotaryScaling, length: int) -> Frequencies:
    """Peng et al. 2023, section 3.2 and 3.4: pairs that turn often stay, those that never turn round are divided."""

    def pair_turning(times: float) -> float:
        return turned * math.log(scaling.trained / (times * 2 * math.pi)) / (2 * math.log(theta))

    low, high = pair_turning(scaling.fast), pair_turning(scaling.slow)
    first = max(math.floor(low) if scaling.whole else low, 0)
    last = min(math.ceil(high) if scaling.whole else high, turned - 1)
    pair = torch.arange(turned // 2, dtype=torch.float32, device="cpu")
    divided = ((pair - first) / (last - first or 0.001)).clamp(0, 1)
    made = unscaled_frequencies(turned, theta)
    attention = 0.1 * math.log(scaling.factor) + 1 if scaling.factor > 1 else 1.0
    return made / scaling.factor * divided + made * (1 - divided), attention


def llama3(turned: int, theta: float, scaling: RotaryScaling, length: int) -> Frequencies:
    """Long wavelengths are divided, short ones stay, and those between are mixed (the code of Llama 3.1)."""
    made = unscaled_frequencies(turned, theta)
    turns = scaling.trained * made / (2 * math.pi)  # within the trained positions
    kept = ((turns - scaling.low) / (scaling.high - scaling.low)).clamp(0, 1)
    return made / scaling.factor * (1 - kept) + made * kept, 1.0


def longrope(turned: int, theta: float, scaling: RotaryScaling, length: int) -> Frequencies:
    """Ding et al. 2024: a divisor for each pair, found by search, one list for short texts and one for long ones."""
    divisors = scaling.long if length > scaling.trained else scaling.short
    attention = math.sqrt(1 + math.log(scaling.factor) / math.log(scaling.trained)) if scaling.factor > 1 else 1.0
    return unscaled_frequencies(turned, theta) / torch.tensor(divisors, dtype=torch.float32, device="cpu"), attention


KINDS = {"linear": linear, "dynamic": dynamic, "yarn": yarn, "llama3": llama3, "longrope": longrope}
