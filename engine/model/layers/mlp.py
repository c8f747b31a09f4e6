"""The position-wise feed-forward network."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from engine.model.config import MLP as MLPConfig
from engine.model.hooks import HookPoint
from engine.model.layers.module import Linear, Module

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": functional.relu,
    "relu2": lambda x: functional.relu(x).square(),  # So et al. 2021, Primer, section 3
    "gelu": functional.gelu,  # x Phi(x), Hendrycks & Gimpel 2016
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),  # GPT-2's approximation of it
    "quick_gelu": lambda x: x * (1.702 * x).sigmoid(),  # Hendrycks & Gimpel 2016's other approximation (ImageGPT, CLIP)
    "silu": functional.silu,
    "tanh": torch.tanh,
}


def activate(config: MLPConfig, pre: Tensor, up: Tensor | None) -> Tensor:
    """act(pre), or act(pre) * up when gated."""
    if config.limit is not None:
        pre = pre.clamp(max=config.limit)
        up = None if up is None else up.clamp(-config.limit, config.limit)
    if config.slope == 1.0:
        post = ACTIVATIONS[config.activation](pre)
    else:
        post = ACTIVATIONS[config.activation](config.slope * pre) / config.slope
    if up is None:
        return post
    return post * (up + config.shift if config.shift else up)


class MLP(Module):
    """out(act(pre)), or out(act(pre) * up) when gated."""

    def __init__(self, config: MLPConfig, d_model: int) -> None:
        super().__init__()
        self.pre = Linear(d_model, config.d_mlp, bias=config.bias)
        self.up = Linear(d_model, config.d_mlp, bias=config.bias) if config.gated else None
        self.out = Linear(config.d_mlp, d_model, bias=config.bias)
        self.config = config
        self.hook_pre = HookPoint("pre", "batch pos d_mlp")
        if config.gated:
            self.hook_up = HookPoint("up", "batch pos d_mlp")
        self.hook_post = HookPoint("post", "batch pos d_mlp")
        self.hook_out = HookPoint("out", "batch pos d_model")

    def forward(self, x: Tensor) -> Tensor:
        pre = self.hook_pre(self.pre(x))
        up = None if self.up is None else self.hook_up(self.up(x))
        return self.hook_out(self.out(self.hook_post(activate(self.config, pre, up))))
