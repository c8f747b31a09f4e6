"""Three norms on one batch, without their learned weights: which numbers the mean of each runs over."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding

NormName = Literal["layer", "rms", "batch"]
EPS = 1e-5


def normalise(x: Tensor, kind: NormName) -> Tensor:
    """`x` (row feature; a row is a token of some text) as LayerNorm (Ba et al. 2016), RMSNorm (Zhang & Sennrich 2019)
    or, at training, BatchNorm (Ioffe & Szegedy 2015) brings it to one scale."""
    if kind == "rms":
        return x / (x.square().mean(-1, keepdim=True) + EPS).sqrt()
    axis = -1 if kind == "layer" else 0
    mean, variance = x.mean(axis, keepdim=True), x.var(axis, correction=0, keepdim=True)
    return (x - mean) / (variance + EPS).sqrt()


def mean_and_spread(x: Tensor) -> Tensor:
    """How far each vector (row feature) goes along the mean, sqrt(d) * mean, and across it, sqrt(d) * standard
    deviation: row 2. Whatever d is, the length of the pair is that of the vector."""
    return x.shape[-1] ** 0.5 * torch.stack([x.mean(-1), x.std(-1, correction=0)], -1)


def averaged_over(shape: tuple[int, int], kind: NormName, row: int, feature: int) -> Tensor:
    """True for the numbers (row feature) that the mean for one of them runs over."""
    found = torch.zeros(shape, dtype=torch.bool)
    if kind == "batch":
        found[:, feature] = True
    else:
        found[row] = True
    return found


def batch_norm_at_inference(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    """BatchNorm with the mean and variance (feature) that it kept from training: a row does not need the others."""
    return (x - mean) / (variance + EPS).sqrt()


def mlp_alone(checkpoint: Checkpoint, encoding: Encoding, layer: int) -> Tensor:
    """Largest difference between what the MLP of a layer gives each token in a text and on its own, pos."""
    mlp = checkpoint.model.get_submodule(f"blocks.{layer}.mlp")
    trace = run(checkpoint.model, encoding, keep=[f"blocks.{layer}.norm2.out", f"blocks.{layer}.mlp.out"])
    x, out = trace[f"blocks.{layer}.norm2.out"][0], trace[f"blocks.{layer}.mlp.out"][0]
    with torch.no_grad():
        alone = torch.cat([mlp(row[None, None])[0] for row in x])
    return (alone - out).abs().amax(-1)
