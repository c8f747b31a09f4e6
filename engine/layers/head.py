"""From the last residual stream to logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.nn.functional import linear

from engine.config import ModelConfig
from engine.hooks import HookPoint
from engine.layers.mlp import ACTIVATIONS
from engine.layers.norm import make_norm

SLICE = 2048  # rows


def onto_vocabulary(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b. One thread goes through a wide W in slices that its cache holds, in two thirds of the time."""
    whole = is_compiling() or torch.is_grad_enabled() or x.device.type != "cpu" or len(weight) < 4 * SLICE
    if whole or torch.get_num_threads() > 1:
        return linear(x, weight, bias)
    biases = [None] * len(weight) if bias is None else bias.split(SLICE)
    return torch.cat([linear(x, rows, b) for rows, b in zip(weight.split(SLICE), biases, strict=False)], dim=-1)


class LanguageHead(nn.Module):
    """logits = resid W_U^T (+ b); a tied head's W_U is the token embedding (Press & Wolf 2017).

    A masked head sends the stream through a dense layer, an activation and a norm first (BERT's code).
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        head = config.head
        self.scale, self.softcap, self.outputs = head.scale, head.softcap, config.outputs
        self.weight = None if config.tied else nn.Parameter(torch.empty(config.outputs, config.d_model))
        self.bias = nn.Parameter(torch.empty(config.outputs)) if head.bias else None
        self.dense = nn.Linear(config.d_model, config.d_model) if head.kind == "masked" else None
        if head.kind == "masked":
            self.activation = ACTIVATIONS[head.activation]
            self.norm = make_norm(config.norm, config.d_model)
            self.hook_pre = HookPoint("pre", "batch pos d_model")
            self.hook_post = HookPoint("post", "batch pos d_model")

    def forward(self, resid: Tensor, embedding: Tensor) -> Tensor:
        if self.dense is not None:
            resid = self.norm(self.hook_post(self.activation(self.hook_pre(self.dense(resid)))))
        if self.scale != 1:
            resid = resid * self.scale
        logits = onto_vocabulary(resid, embedding[: self.outputs] if self.weight is None else self.weight, self.bias)
        return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)


class ClassHead(nn.Module):
    """logits = x W^T + b over classes."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.outputs, config.d_model))
        self.bias = nn.Parameter(torch.empty(config.outputs))

    def forward(self, x: Tensor, embedding: Tensor | None = None) -> Tensor:
        return linear(x, self.weight, self.bias)


class Pooler(nn.Module):
    """tanh(W x + b) of the first position, batch d_model (BERT's code)."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)
        self.hook_pre = HookPoint("pre", "batch d_model")
        self.hook_out = HookPoint("out", "batch d_model")

    def forward(self, resid: Tensor) -> Tensor:
        return self.hook_out(torch.tanh(self.hook_pre(self.dense(resid[:, 0]))))
