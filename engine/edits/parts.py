"""What of a block can be weighed or taken out by scaling one hook."""

from __future__ import annotations

from collections.abc import Collection

from engine.edits.edit import Side
from engine.model.hooks import ADDED

# What a part is called -> the hooks that stand for it, the first that a block has counts.
PARTS = {
    "attention": ADDED["attn"],
    "attention to the encoder": ADDED["cross_attn"],
    "MLP": ADDED["mlp"],
    "residual past attention": ("skip1",),
    "residual past attention to the encoder": ("skip_cross",),
    "residual past the MLP": ("skip2",),
    "norm 1": ("norm1.strength",),
    "norm of attention to the encoder": ("norm_cross.strength",),
    "norm 2": ("norm2.strength",),
    "norm 1 after": ("norm1_after.strength",),
    "norm 2 after": ("norm2_after.strength",),
}


def parts(hooks: Collection[str], layer: int, stack: Side | None = None) -> dict[str, str]:
    """The parts of a block, by name: the hook that `Scale` weighs each with, where 0 takes it out.

    `hooks` are those of the model. A sublayer is weighed by what it adds to the stream, behind its own norm; where both
    sublayers stand side by side, one residual connection is that of both. A norm's strength is 1, and 0 passes on what
    it reads.
    """
    block = f"{stack + '.' if stack else ''}blocks.{layer}."
    found = {name: [f"{block}{hook}" for hook in wanted if f"{block}{hook}" in hooks] for name, wanted in PARTS.items()}
    return {name: first for name, (first, *_) in ((name, hit) for name, hit in found.items() if hit)}
