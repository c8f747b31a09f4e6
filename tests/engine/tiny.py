"""Models small enough to compute by hand, with weights large enough that attention is far from uniform."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from engine.model.config import MLP, Attention, ModelConfig, Norm, Positions
from engine.model.transformer import Transformer, initialise

__all__ = ["CONFIG", "IDS", "MLP", "POSITIONS", "Attention", "Norm", "Positions", "config", "model", "normal"]

torch.set_num_threads(1)

POSITIONS = ("learned", "sinusoidal", "rotary", "alibi", "none")
CONFIG = ModelConfig(vocab_size=11, context=24, d_model=16, layers=3, attention=Attention(heads=4), mlp=MLP(d_mlp=20))
IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def config(
    positions: str | Positions = "learned", attention: dict[str, Any] | None = None, **changes: Any
) -> ModelConfig:
    """CONFIG with changes; those of `attention` go into its attention."""
    placed = Positions(positions) if isinstance(positions, str) else positions  # type: ignore[arg-type]
    return replace(CONFIG, positions=placed, attention=replace(CONFIG.attention, **(attention or {})), **changes)


def model(config: ModelConfig = CONFIG, seed: int = 0) -> Transformer:
    """Every parameter and average random, biases and norms too, so that none of them can be forgotten unnoticed."""
    made = initialise(Transformer(config), seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            drawn = torch.empty_like(parameter).normal_(0.0, 0.4, generator=generator)
            parameter.copy_(1 + drawn if "norm" in name and name.endswith("weight") else drawn)
        for name, buffer in made.named_buffers():
            if "norm" in name:  # the averages of a batch norm
                drawn = torch.empty_like(buffer).normal_(0.0, 0.4, generator=generator)
                buffer.copy_(drawn.exp() if name.endswith("variance") else drawn)
    return made.requires_grad_(False).eval()


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.empty(shape).normal_(generator=torch.Generator().manual_seed(seed))
