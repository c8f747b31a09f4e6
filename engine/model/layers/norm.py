"""Normalisation: LayerNorm, RMSNorm, BatchNorm, or none.

Each goes from x to its result by a `strength` that is 1 until an edit changes it: at 0 the norm is taken out.
`normalized` is x / scale, before weight and bias.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

import torch
from torch import Tensor, nn

from engine.model.config import Norm as NormConfig
from engine.model.config import NormKind
from engine.model.hooks import HookPoint, any_wanted
from engine.model.layers.module import Module


class LayerNorm(Module):
    """(x - mean) / scale * weight + bias, with scale = sqrt(variance + eps) (Ba et al. 2016); weight and bias are None
    where they are not learned. `weight` is (head width) where each head has its own, and the bias then None."""

    def __init__(self, width: int, config: NormConfig, axes: str) -> None:
        super().__init__()
        self.eps = config.eps
        self.weight = nn.Parameter(torch.ones(width)) if config.has_weight else None
        self.bias = nn.Parameter(torch.zeros(width)) if config.has_bias else None
        self.hook_scale = HookPoint("scale", axes.rpartition(" ")[0])
        self.hook_normalized = HookPoint("normalized", axes, on_request=True)
        self.hook_strength = HookPoint("strength", axes.rpartition(" ")[0], on_request=True)
        self.hook_out = HookPoint("out", axes)

    def forward(self, x: Tensor) -> Tensor:
        weight, bias = self._parameters.get("weight"), self._parameters.get("bias")  # where PyTorch looks last
        if not any_wanted((self.hook_scale, self.hook_normalized)):
            if weight is not None and weight.dim() > 1:
                out = torch.layer_norm(x, x.shape[-1:], None, bias, self.eps) * weight
            else:
                out = torch.layer_norm(x, x.shape[-1:], weight, bias, self.eps)
            return self.hook_out(interpolate_norm(x, out, self.hook_strength) if self.hook_strength.is_active else out)
        one = None if weight is None or weight.dim() > 1 else weight
        out, mean, inverse = torch.native_layer_norm(x, x.shape[-1:], one, bias, self.eps)
        out = out if one is weight else stretch(self, out)
        computed = inverse.reciprocal().squeeze(-1)
        scale = self.hook_scale(computed)
        if scale is not computed or self.hook_normalized.is_active:
            made = (x - mean) / scale[..., None]
            normalized = self.hook_normalized(made)
            if scale is not computed or normalized is not made:  # edited: the fused result no longer holds
                out = stretch(self, normalized) if bias is None else stretch(self, normalized) + bias
        return self.hook_out(interpolate_norm(x, out, self.hook_strength) if self.hook_strength.is_active else out)


class RMSNorm(Module):
    """x / scale * weight, with scale = sqrt(mean(x^2) + eps) (Zhang & Sennrich 2019); computed in the dtype of `weight`
    where that is the wider one. `weight` is None where it is not learned, (head width) where each head has its own."""

    def __init__(self, width: int, config: NormConfig, axes: str) -> None:
        super().__init__()
        self.eps, self.root_width = config.eps, width**0.5
        self.root_eps = torch.tensor(config.eps**0.5, device="cpu")
        self.weight = nn.Parameter(torch.ones(width)) if config.has_weight else None
        self.hook_scale = HookPoint("scale", axes.rpartition(" ")[0])
        self.hook_normalized = HookPoint("normalized", axes, on_request=True)
        self.hook_strength = HookPoint("strength", axes.rpartition(" ")[0], on_request=True)
        self.hook_out = HookPoint("out", axes)

    def forward(self, x: Tensor) -> Tensor:
        weight = self._parameters.get("weight")
        read = x if weight is None else x.to(weight.dtype)
        if not any_wanted((self.hook_scale, self.hook_normalized)):
            if weight is not None and weight.dim() > 1:
                out = (torch.rms_norm(read, x.shape[-1:], None, self.eps) * weight).to(x.dtype)
            else:
                out = torch.rms_norm(read, x.shape[-1:], weight, self.eps).to(x.dtype)
            return self.hook_out(interpolate_norm(x, out, self.hook_strength) if self.hook_strength.is_active else out)
        root_mean_square = torch.linalg.vector_norm(read, dim=-1) / self.root_width
        scale = self.hook_scale(torch.hypot(root_mean_square, self.root_eps))
        out = stretch(self, self.hook_normalized(read / scale[..., None])).to(x.dtype)
        return self.hook_out(interpolate_norm(x, out, self.hook_strength) if self.hook_strength.is_active else out)


class BatchNorm(Module):
    """(x - mean) / sqrt(variance + eps) * weight + bias, mean and variance of each feature over all positions of all
    texts, padding too (Ioffe & Szegedy 2015).

    While it learns they are those of the batch, so that a position sees those after it and other texts; `mean` and
    `variance`, the running averages of them, take their place in evaluation, and where its weights are frozen.
    """

    mean: Tensor
    variance: Tensor

    def __init__(self, width: int, config: NormConfig, axes: str) -> None:
        super().__init__()
        self.eps = config.eps
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("variance", torch.ones(width))
        self.hook_strength = HookPoint("strength", axes.rpartition(" ")[0], on_request=True)
        self.hook_out = HookPoint("out", axes)

    def forward(self, x: Tensor) -> Tensor:
        rows = x.flatten(0, -2)
        learns = self.training and self.weight.requires_grad and len(rows) > 1  # one alone has no variance
        normal = nn.functional.batch_norm(
            rows, self.mean, self.variance, self.weight, self.bias, training=learns, eps=self.eps
        )
        out = normal.view_as(x)
        return self.hook_out(interpolate_norm(x, out, self.hook_strength) if self.hook_strength.is_active else out)


class NoNorm(Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


def stretch(norm: LayerNorm | RMSNorm | BatchNorm, x: Tensor) -> Tensor:
    """x (... width) times what the norm learned of each feature, if it did."""
    return x if norm.weight is None else x * norm.weight


def give_own_weights(norm: nn.Module, heads: int) -> None:
    """Gives each head a weight of its own, if the norm learns one; no bias goes with them (Cohere, StableLM 2)."""
    if isinstance(norm, (LayerNorm, RMSNorm)) and norm.weight is not None:
        norm.weight = nn.Parameter(norm.weight.new_ones(heads, len(norm.weight)))
        if isinstance(norm, LayerNorm):
            norm.bias = None


def norm_of_head(norm: nn.Module, head: int) -> nn.Module:
    """The norm of one head's queries or keys."""
    if not isinstance(norm, (LayerNorm, RMSNorm)) or norm.weight is None or norm.weight.dim() == 1:
        return norm
    one = copy(norm)
    one._parameters = {**norm._parameters, "weight": nn.Parameter(norm.weight[head], requires_grad=False)}
    return one


def interpolate_norm(x: Tensor, out: Tensor, hook: HookPoint) -> Tensor:
    """x + strength (out - x), exact at 0 and 1."""
    full = x.new_ones(x.shape[:-1])
    strength = hook(full)
    return out if strength is full else torch.lerp(x, out, strength[..., None])


def make_norm(config: NormConfig, width: int, axes: str = "batch pos d_model") -> nn.Module:
    """Over the last of `axes`, which has `width` elements."""
    kinds: dict[NormKind, Callable[[int, NormConfig, str], nn.Module]] = {
        "layer": LayerNorm,
        "rms": RMSNorm,
        "batch": BatchNorm,
    }
    return kinds[config.kind](width, config, axes) if config.kind in kinds else NoNorm()
