"""One vector for a whole text: pooled of the last residual stream, mapped, and divided by its length."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from engine.model.config import ModelConfig, Pooling, VectorMap
from engine.model.hooks import HookPoint
from engine.model.layers.mlp import ACTIVATIONS
from engine.model.layers.module import Module

SHORTEST = 1e-12  # what a length is at least, where it divides (PyTorch's normalize)


class TextVector(Module):
    """`vector` of a config: `pooled`, then each of the maps, then `out` (Reimers & Gurevych 2019, section 3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        assert config.vector is not None
        self.kinds, self.unit = config.vector.pooled, config.vector.unit
        of = "batch" if self.kinds else "batch pos"
        self.hook_pooled = HookPoint("pooled", f"{of} pooled") if self.kinds else None
        widths = [config.d_model * max(len(self.kinds), 1), *(one.width for one in config.vector.maps)]
        self.maps = nn.ModuleList(
            MapOfVector(one, width, of) for one, width in zip(config.vector.maps, widths, strict=False)
        )
        self.hook_out = HookPoint("out", f"{of} component")

    def forward(self, last: Tensor, real: Tensor | None) -> Tensor:
        """batch component, or batch pos component where nothing is pooled. `last` is batch pos d_model, `real` batch
        pos, False at padding."""
        x = last
        if self.hook_pooled is not None:
            shares = [pool(last, kind, real) for kind in self.kinds]
            x = self.hook_pooled(torch.cat(shares, dim=-1))
        for made in self.maps:
            x = made(x)
        if self.unit:
            x = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True).clamp(min=SHORTEST)
        return self.hook_out(x)


class MapOfVector(Module):
    """act(W x + b)."""

    def __init__(self, config: VectorMap, reads: int, of: str) -> None:
        super().__init__()
        self.dense = nn.Linear(reads, config.width, bias=config.bias)
        self.activation = None if config.activation == "identity" else ACTIVATIONS[config.activation]
        axes = f"{of} component"
        self.hook_pre = None if self.activation is None else HookPoint("pre", axes)
        self.hook_out = HookPoint("out", axes)

    def forward(self, x: Tensor) -> Tensor:
        made = self.dense(x)
        if self.activation is not None and self.hook_pre is not None:
            made = self.activation(self.hook_pre(made))
        return self.hook_out(made)


def pool(last: Tensor, kind: Pooling, real: Tensor | None = None) -> Tensor:
    """batch d_model, of the last residual stream, batch pos d_model, where it is `real` (batch pos)."""
    return (last * pooling_weights(last, kind, real)).sum(1)


def pooling_weights(last: Tensor, kind: Pooling, real: Tensor | None = None) -> Tensor:
    """What each number of the last residual stream is multiplied by before the sum over positions, batch pos d_model
    or batch pos 1."""
    if real is None:
        real = torch.ones(last.shape[:2], dtype=torch.bool, device=last.device)
    return WEIGHTS[kind](last, real)


def weigh_first(last: Tensor, real: Tensor) -> Tensor:
    return at_position(last, real.int().argmax(1))


def weigh_last(last: Tensor, real: Tensor) -> Tensor:
    pos = torch.arange(real.shape[1], device=real.device)
    return at_position(last, (real * pos).argmax(1))


def at_position(last: Tensor, at: Tensor) -> Tensor:
    pos = torch.arange(last.shape[1], device=last.device)
    return (pos == at[:, None]).to(last.dtype)[..., None]


def weigh_mean(last: Tensor, real: Tensor) -> Tensor:
    counted = real.to(last.dtype)
    return (counted / counted.sum(1, keepdim=True).clamp(min=1))[..., None]


def weigh_later_more(last: Tensor, real: Tensor) -> Tensor:
    counted = (real.long().cumsum(1) * real).to(last.dtype)
    return (counted / counted.sum(1, keepdim=True).clamp(min=1))[..., None]


def scale_sum(last: Tensor, real: Tensor) -> Tensor:
    counted = real.to(last.dtype)
    return (counted / counted.sum(1, keepdim=True).clamp(min=1).sqrt())[..., None]


def take_greatest(last: Tensor, real: Tensor) -> Tensor:
    best = last.masked_fill(~real[..., None], float("-inf")).argmax(1, keepdim=True)
    return torch.zeros_like(last).scatter(1, best, 1.0)


WEIGHTS: dict[Pooling, Callable[[Tensor, Tensor], Tensor]] = {
    "first": weigh_first,
    "last": weigh_last,
    "mean": weigh_mean,
    "max": take_greatest,
    "weighted_mean": weigh_later_more,
    "scaled_sum": scale_sum,
}
