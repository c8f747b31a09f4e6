"""Vectors of a text as arrows in a plane: those of a model of two dimensions as they are, others by the two directions
that tell most of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from engine.model.transformer import Transformer
from engine.runtime.trace import Trace


class Flat(NamedTuple):
    """Vectors in a plane, pos 2, and which share of the squares of all their numbers the plane holds."""

    vectors: Tensor
    share: float
    directions: Tensor


def flatten(vectors: Tensor) -> Flat:
    """`vectors` (pos d) by the two directions that hold most of them: the first right singular vectors, not centred, so
    that a sum of arrows is the arrow of the sum. Each points to where its largest number is positive."""
    if vectors.shape[-1] == 2:
        return Flat(vectors, 1.0, torch.eye(2))
    _left, sizes, right = torch.linalg.svd(vectors.double(), full_matrices=False)
    directions = right[:2]
    largest = directions.gather(-1, directions.abs().argmax(-1, keepdim=True))
    directions = (directions * largest.sign()).to(vectors.dtype)
    squares = sizes.square()
    return Flat(vectors @ directions.T, float(squares[:2].sum() / squares.sum()), directions)


class Gathering(NamedTuple):
    """What the tokens gather in one head of a block, in the residual stream: `begin` (pos d) is what each holds,
    `weights` (pos key) how much it takes of each, and `carried` (key d) what each gives: its value by W_O."""

    begin: Tensor
    weights: Tensor
    carried: Tensor


def gather(model: Transformer, trace: Trace, layer: int = 0, head: int = 0) -> Gathering:
    values = trace[f"blocks.{layer}.attn.v"][0, :, head]
    size = values.shape[-1]
    weight = model.get_parameter(f"blocks.{layer}.attn.out.weight").detach()
    out = weight[:, head * size : (head + 1) * size]
    pattern = trace[f"blocks.{layer}.attn.pattern"][0, head]
    return Gathering(trace[f"blocks.{layer}.resid_pre"][0], pattern, values @ out.T)
