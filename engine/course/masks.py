"""Masks by name, as the layers have them, and what a head attends to under one."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.checkpoints import Checkpoint
from engine.edits import DrawMask
from engine.model.layers.mask import Causal, Full, Padding, Prefix, SlidingWindow
from engine.runtime.run import run
from engine.tokenizers.encoding import Encoding

KINDS = ("none", "causal", "padding", "prefix", "window")


def mask_of(kind: str, length: int, size: int = 2) -> Tensor:
    """Mask of who may attend to whom, bool pos key. `size` is the prefix's length, the window's reach, or how many
    tokens at the end are padding."""
    positions = torch.arange(length)
    real = (positions < length - size)[None]
    masks = {
        "none": Full(),
        "causal": Causal(),
        "padding": Padding(real),
        "prefix": Prefix(size),
        "window": SlidingWindow(size) & Causal(),
    }
    return masks[kind].allows(positions, positions).expand(1, 1, length, length)[0, 0]


def pattern_under(checkpoint: Checkpoint, encoding: Encoding, allowed: Tensor, layer: int, head: int) -> Tensor:
    """The pattern of a head, pos key, with `allowed` in place of its own mask."""
    edit = DrawMask(layer, allowed.tolist(), [head])
    hook = f"blocks.{layer}.attn.pattern"
    return run(checkpoint.model, encoding, keep=[hook], edits=[edit])[hook][0, head]
