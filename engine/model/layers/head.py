"""From the last residual stream to logits."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.compiler import is_compiling
from torch.nn.functional import linear

from engine.model.config import ModelConfig
from engine.model.hooks import HookPoint
from engine.model.layers.mlp import ACTIVATIONS
from engine.model.layers.module import Module
from engine.model.layers.norm import make_norm

SLICE = 2048  # rows


def onto_vocabulary(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """x W^T + b. One thread goes through a wide W in slices that its cache holds, in two thirds of the time; for a
    single position it reads W once in any case.
    """
    whole = is_compiling() or torch.is_grad_enabled() or x.device.type != "cpu" or len(weight) < 4 * SLICE
    if whole or x.numel() == x.shape[-1] or torch.get_num_threads() > 1:
        return linear(x, weight, bias)
    biases = [None] * len(weight) if bias is None else bias.split(SLICE)
    return torch.cat([linear(x, rows, b) for rows, b in zip(weight.split(SLICE), biases, strict=False)], dim=-1)


class Narrowing(Module):
    """Start of a head: the map back to the width of the token vectors."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.narrow = nn.Linear(config.d_model, config.d_embed, bias=False) if config.narrows else None
        if self.narrow is not None:
            once = config.head.kind == "sequence"
            self.hook_narrow = HookPoint("narrow", "batch d_embed" if once else "batch pos d_embed")

    def apply_narrow(self, x: Tensor) -> Tensor:
        return x if self.narrow is None else self.hook_narrow(self.narrow(x))


class BareHead(Narrowing):
    """Map to that width alone, behind a body that ends with it."""

    def forward(self, x: Tensor) -> Tensor:
        return self.apply_narrow(x)


class LanguageHead(Narrowing):
    """logits = resid W_U^T (+ b); a tied head's W_U is the token embedding (Press & Wolf 2017).

    A masked head sends the stream through a dense layer, an activation and a norm first (BERT's code). Where token
    vectors have a width of their own, that layer makes the stream as narrow, and `narrow` does in any other head.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        head = config.head
        self.scale, self.softcap, self.outputs = head.scale, head.softcap, config.outputs
        width = config.d_embed
        self.weight = None if config.tied else nn.Parameter(torch.empty(config.outputs, width))
        self.bias = nn.Parameter(torch.empty(config.outputs)) if head.has_bias else None
        self.dense = nn.Linear(config.d_model, width, bias=head.dense_bias) if head.kind == "masked" else None
        if head.kind == "masked":
            axes = "batch pos d_model" if config.embedding.width is None else "batch pos d_embed"
            self.activation = ACTIVATIONS[head.activation]
            self.norm = make_norm(config.norm, width, axes)
            self.hook_pre = HookPoint("pre", axes)
            self.hook_post = HookPoint("post", axes)

    def forward(self, resid: Tensor, embedding: Tensor) -> Tensor:
        if self.dense is not None:
            resid = self.norm(self.hook_post(self.activation(self.hook_pre(self.dense(resid)))))
        resid = self.apply_narrow(resid)
        if self.scale != 1:
            resid = resid * self.scale
        logits = onto_vocabulary(resid, embedding[: self.outputs] if self.weight is None else self.weight, self.bias)
        return logits if self.softcap is None else self.softcap * torch.tanh(logits / self.softcap)


class ClassHead(Narrowing):
    """logits = x W^T (+ b) over classes, of x behind a dense layer, an activation and a norm where there are such."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        head = config.head
        width, last = (config.d_embed, "d_embed") if config.narrows else (config.d_model, "d_model")
        if head.read == "vector" and config.vector is not None:
            width, last = config.vector.width(config.d_model), "component"
        axes = f"batch {last}" if head.kind == "sequence" else f"batch pos {last}"
        self.weight = nn.Parameter(torch.empty(config.outputs, width))
        self.bias = nn.Parameter(torch.empty(config.outputs)) if head.has_bias else None
        self.dense = nn.Linear(width, width, bias=head.dense_bias) if head.dense else None
        self.norm = make_norm(config.norm, width, axes) if head.norm else None
        if self.dense is not None:
            self.activation = ACTIVATIONS[head.activation]
            self.hook_pre = HookPoint("pre", axes)
            self.hook_post = HookPoint("post", axes)

    def forward(self, x: Tensor, embedding: Tensor | None = None) -> Tensor:
        x = self.apply_narrow(x)
        if self.dense is not None:
            x = self.hook_post(self.activation(self.hook_pre(self.dense(x))))
        x = x if self.norm is None else self.norm(x)
        return linear(x, self.weight, self.bias)


class MeanHead(ClassHead):
    """Classifies by the mean of all positions (Chen et al. 2020, section 2.3)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.hook_mean = HookPoint("mean", "batch d_model")

    def mean(self, last: Tensor, padding: Tensor | None) -> Tensor:
        """Mean of the last residual stream, batch pos d_model, where it is real (`padding` True), batch d_model."""
        if padding is None:
            return self.hook_mean(last.mean(1))
        real = padding[..., None].to(last.dtype)
        return self.hook_mean((last * real).sum(1) / real.sum(1))


class AveragedHead(ClassHead):
    """The mean of two classifiers' logits, of [CLS] and of [DIST] (Touvron et al. 2021, section 4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.distilled = nn.Linear(config.d_model, config.outputs, bias=config.head.has_bias)
        self.hook_cls = HookPoint("cls", "batch class")
        self.hook_distilled = HookPoint("distilled", "batch class")

    def forward(self, x: Tensor, embedding: Tensor | None = None) -> Tensor:
        """`x` is the last residual stream, batch pos d_model."""
        cls = self.hook_cls(super().forward(x[:, 0]))
        return (cls + self.hook_distilled(self.distilled(x[:, 1]))) / 2


def make_head(config: ModelConfig) -> LanguageHead | ClassHead | BareHead | None:
    """None where the last residual stream is what the model gives."""
    head = config.head
    if head.kind in ("language", "masked"):
        return LanguageHead(config)
    if head.kind == "none":
        return BareHead(config) if config.narrows else None
    if head.averaged:
        return AveragedHead(config)
    return MeanHead(config) if head.kind == "sequence" and head.read == "mean" else ClassHead(config)


class Pooler(Module):
    """tanh(W x + b), or another activation, of the position that stands for the whole text, batch d_model."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.d_model, config.d_model)
        self.activation = ACTIVATIONS[config.head.pooler_activation]
        self.hook_pre = HookPoint("pre", "batch d_model")
        self.hook_out = HookPoint("out", "batch d_model")

    def forward(self, x: Tensor) -> Tensor:
        return self.hook_out(self.activation(self.hook_pre(self.dense(x))))
