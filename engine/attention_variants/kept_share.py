"""What each kind of attention keeps of a real head's pattern."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.attention_variants.blocks import allowed_2d
from engine.attention_variants.heads import Heads
from engine.attention_variants.material import Material, long_text
from engine.attention_variants.measure import Setup, grid, index_of
from engine.attention_variants.nearest import Found, exact, fold
from engine.checkpoints import Checkpoint
from engine.runtime.run import run


@dataclass(frozen=True)
class KeptPattern:
    """`pattern` (pos key) is the softmax over the keys `allowed`; `mass` is the share of the full pattern that was on
    them, averaged over queries, and `cells` their share of all that a query might look at."""

    pattern: Tensor
    allowed: Tensor
    mass: float
    cells: float


def keep(pattern: Tensor, allowed: Tensor) -> KeptPattern:
    """A causal pattern (pos key) over fewer keys: what is left of each row, divided by its sum.

    That is the softmax over the allowed scores, since softmax over a part of the keys is softmax over all of them,
    divided by the part's share. A row with nothing allowed is all zero.
    """
    visible = torch.ones_like(allowed).tril()
    allowed = allowed & visible
    left = pattern * allowed
    mass = left.sum(-1, keepdim=True)
    share = allowed.sum().item() / visible.sum().item()
    return KeptPattern(left / mass.clamp(min=torch.finfo(mass.dtype).tiny), allowed, mass.mean().item(), share)


def patterns(
    checkpoint: Checkpoint, positions: int, layer: int, head: int, setup: Setup, begun: str = ""
) -> dict[str, KeptPattern]:
    """The head's pattern on the first tokens of the long text that is `begun` so, whole and as every kind of
    `measure.KINDS` limits it.

    `window` counts back only, and 2-D blocks take the text for an image in raster order. The nearest are searched for
    among the states that a query may see.
    """
    read, attended = f"blocks.{layer}.norm1.out", f"blocks.{layer}.attn.pattern"
    trace = run(checkpoint.model, long_text(checkpoint, positions, begun)[None], keep=[read, attended])
    states, pattern = trace[read][0], trace[attended][0, head]
    model = checkpoint.model
    heads = Heads.from_layer(model.get_submodule(f"blocks.{layer}.attn"), model.config.attention.heads)
    queries = fold(heads.queries(states), heads.w_k)[head]
    pos = torch.arange(positions)
    visible = pos + 1
    index = index_of(Material(states, heads), setup.quantizer)
    block, margin = (setup.block, setup.block), (setup.margin, setup.margin)
    allowed = {
        "full": torch.ones_like(pattern, dtype=torch.bool),
        "window": pos[:, None] - pos < setup.window,
        "blocks": allowed_2d(grid(positions), block, margin),
        "nearest": among(exact(queries, states, setup.k, visible), positions),
        "quantized": among(index.search(queries, setup.k, visible), positions),
    }
    return {kind: keep(pattern, mask) for kind, mask in allowed.items()}


def among(hits: Found, length: int) -> Tensor:
    """Tells which keys were found, as pos key."""
    allowed = torch.zeros(len(hits[1]), length + 1, dtype=torch.bool)
    return allowed.scatter_(1, hits[1] % (length + 1), True)[:, :length]  # -1, none, goes to the end, cut off
