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

    A masked head sends the stream through a dense layer, an activation and a norm first (BERT's code). Where token
    vectors have a width of their own, that layer makes the stream as narrow, and `narrow` does in any other head.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        head = config.head
        self.scale, self.softcap, self.outputs = head.scale, head.softcap, config.outputs
        narrows, width = config.embedding.width is not None, config.d_embed
        self.weight = None if config.tied else nn.Parameter(torch.empty(config.outputs, width))
        self.bias = nn.Parameter(torch.empty(config.outputs)) if head.biased else None
        self.dense = nn.Linear(config.d_model, width) if head.kind == "masked" else None
        self.narrow = nn.Linear(config.d_model, width, bias=False) if narrows and self.dense is None else None
        axes = "batch pos d_embed" if narrows else "batch pos d_model"
        if head.kind == "masked":
            self.activation = ACTIVATIONS[head.activation]
            self.norm = make_norm(config.norm, width, axes)
            self.hook_pre = HookPoint("pre", axes)
            self.hook_post = HookPoint("post", axes)
        if self.narrow is not None:
            self.hook_narrow = HookPoint("narrow", axes)

    def forward(self, resid: Tensor, embedding: Tensor) -> Tensor:
        if self.dense is not None:
            resid = self.norm(self.hook_post(self.activation(self.hook_pre(self.dense(resid)))))
        if self.narrow is not None:
            resid = self.hook_narrow(self.narrow(resid))
        if self.scale != 1:
            resid = resid * self.scale
        logits = onto_vocabulary(resid, embedding[: self.outputs] if self.weight is None else self.weight, self.bias)
        return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)


class ClassHead(nn.Module):
    """logits = x W^T (+ b) over classes, of a token's x behind a dense layer and an activation where there is one."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        head = config.head
        self.weight = nn.Parameter(torch.empty(config.outputs, config.d_model))
        self.bias = nn.Parameter(torch.empty(config.outputs)) if head.biased else None
        self.dense = nn.Linear(config.d_model, config.d_model) if head.dense and head.kind == "token" else None
        if self.dense is not None:
            self.activation = ACTIVATIONS[head.activation]
            self.hook_pre = HookPoint("pre", "batch pos d_model")
            self.hook_post = HookPoint("post", "batch pos d_model")

    def forward(self, x: Tensor, embedding: Tensor | None = None) -> Tensor:
        if self.dense is not None:
            x = self.hook_post(self.activation(self.hook_pre(self.dense(x))))
        return linear(x, self.weight, self.bias)


class AveragedHead(ClassHead):
    """The mean of two classifiers' logits, of [CLS] and of [DIST] (Touvron et al. 2021, section 4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.distilled = nn.Linear(config.d_model, config.outputs, bias=config.head.biased)
        self.hook_cls = HookPoint("cls", "batch class")
        self.hook_distilled = HookPoint("distilled", "batch class")

    def forward(self, x: Tensor, embedding: Tensor | None = None) -> Tensor:
        """`x` is the last residual stream, batch pos d_model."""
        cls = self.hook_cls(super().forward(x[:, 0]))
        return (cls + self.hook_distilled(self.distilled(x[:, 1]))) / 2


class Pooler(nn.Module):
    """tanh(W x + b), or another activation, of the position that stands for the whole text, batch d_model."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.head.pooler_activation]
        self.hook_pre = HookPoint("pre", "batch d_model")
        self.hook_out = HookPoint("out", "batch d_model")

    def forward(self, x: Tensor) -> Tensor:
        return self.hook_out(self.activation(self.hook_pre(self.dense(x))))
