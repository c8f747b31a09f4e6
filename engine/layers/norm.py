"""Normalisation: LayerNorm, RMSNorm, or none."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.config import Norm as NormConfig
from engine.hooks import HookPoint


class LayerNorm(nn.Module):
    """(x - mean) / scale * weight + bias, with scale = sqrt(variance + eps) (Ba et al. 2016)."""

    def __init__(self, d_model: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.hook_scale = HookPoint("scale", "batch pos")
        self.hook_out = HookPoint("out", "batch pos d_model")

    def forward(self, x: Tensor) -> Tensor:
        if not self.hook_scale.wanted:
            return self.hook_out(
                nn.functional.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
            )
        out, mean, inverse = torch.native_layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)
        computed = inverse.reciprocal().squeeze(-1)
        scale = self.hook_scale(computed)
        if scale is not computed:  # edited: the fused result no longer holds
            out = (x - mean) / scale[..., None] * self.weight + self.bias
        return self.hook_out(out)


class RMSNorm(nn.Module):
    """x / scale * weight, with scale = sqrt(mean(x^2) + eps) (Zhang & Sennrich 2019)."""

    def __init__(self, d_model: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.hook_scale = HookPoint("scale", "batch pos")
        self.hook_out = HookPoint("out", "batch pos d_model")

    def forward(self, x: Tensor) -> Tensor:
        if not self.hook_scale.wanted:
            return self.hook_out(nn.functional.rms_norm(x, self.weight.shape, self.weight, self.eps))
        scale = self.hook_scale((x.pow(2).mean(-1) + self.eps).sqrt())
        return self.hook_out(x / scale[..., None] * self.weight)


class NoNorm(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


def make_norm(config: NormConfig, d_model: int) -> nn.Module:
    if config.kind == "layer":
        return LayerNorm(d_model, config.eps)
    return RMSNorm(d_model, config.eps) if config.kind == "rms" else NoNorm()
