"""The block in its four lines, which of its parts are linear, and what of it knows the order of its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn.functional import conv1d

from engine.model.layers.attention import SharedTensors
from engine.model.layers.block import Block
from engine.model.layers.mask import AttentionMask, Full
from engine.model.transformer import Transformer
from engine.runtime import library
from engine.tokenizers.encoding import Encoding

LINES = ("x", "norm1(x)", "attention", "x + attention", "norm2", "MLP", "x + MLP")
REACH = 3  # rows that a convolution sees at once


def stream(name: str, ids: Sequence[int], layer: int) -> Tensor:
    """The residual stream that enters a block, batch pos d_model."""
    return library.traces.trace(name, Encoding.from_ids(ids))[f"blocks.{layer}.resid_pre"]


def places(model: Transformer, length: int) -> SharedTensors:
    """Inputs of attention for rows of that length: the model's mask and its positions."""
    ids, at = torch.zeros(1, length, dtype=torch.long), torch.arange(length)
    (mask, *_) = model.masks(ids, at, at, None, None)
    (turn, *_) = model.turns(model.positions(ids, at), length)
    return model.share(mask, turn)


def block_of(model: Transformer, layer: int) -> Block:
    block = model.blocks[layer]
    assert isinstance(block, Block)
    return block


@torch.no_grad()
def four_lines(name: str, ids: Sequence[int], layer: int) -> list[Tensor]:
    """Values of each of LINES in a block with its norms before, all pos d_model (Vaswani et al. 2017, section 3.1; the
    norm's place as in Radford et al. 2019)."""
    model = library.checkpoint(name).model
    block, x = block_of(model, layer), stream(name, ids, layer)
    normed = block.norm1(x)
    attended = block.attn(normed, places(model, len(ids)))
    mid = x + attended
    assert block.norm2 is not None and block.mlp is not None
    normed_again = block.norm2(mid)
    made = block.mlp(normed_again)
    return [value[0] for value in (x, normed, attended, mid, normed_again, made, mid + made)]


def parts(model: Transformer, layer: int, length: int) -> dict[str, Callable[[Tensor], Tensor]]:
    """Parts of a block as functions of what they read, batch pos d_model."""
    block, shared = block_of(model, layer), places(model, length)
    assert block.norm2 is not None and block.mlp is not None
    return {
        "W_Q": block.attn.q,
        "W_V": block.attn.v,
        "norm": block.norm2,
        "attention": lambda x: block.attn(x, shared),
        "MLP": block.mlp,
    }


@torch.no_grad()
def sum_gaps(name: str, ids: Sequence[int], layer: int) -> dict[str, float]:
    """Measures each part f of a block: the largest element of f(a + b) - f(a) - f(b), as a share of the largest of f(a
    + b). `a` is what enters the block, and in `b` each token has the vector of the one before it. A linear map has
    0."""
    model = library.checkpoint(name).model
    a = stream(name, ids, layer)
    b = a.roll(1, dims=1)
    gaps = {}
    for part, f in parts(model, layer, len(ids)).items():
        whole = f(a + b)
        gaps[part] = float((whole - f(a) - f(b)).abs().max() / whole.abs().max())
    return gaps


@torch.no_grad()
def shuffle_gaps(name: str, ids: Sequence[int], layer: int, seed: int = 0) -> dict[str, float]:
    """Measures each part f of a block: the largest element of f(rows shuffled) - f(rows) shuffled, as a share of the
    largest of f(rows). It is 0 for what knows nothing of the order. "attention, bare" has neither mask nor positions,
    and the convolution, of REACH rows, random weights."""
    model = library.checkpoint(name).model
    rows = stream(name, ids, layer)
    at, order = torch.arange(len(ids)), torch.randperm(len(ids), generator=torch.Generator().manual_seed(seed))
    known = parts(model, layer, len(ids))
    block, bare = block_of(model, layer), SharedTensors(AttentionMask(Full(), at, at))
    width = rows.shape[-1]
    kernel = torch.randn(width, width, REACH, generator=torch.Generator().manual_seed(seed)) / (REACH * width) ** 0.5
    asked: dict[str, Callable[[Tensor], Tensor]] = {
        "MLP": known["MLP"],
        "attention, bare": lambda x: block.attn(x, bare),
        "attention": known["attention"],
        "convolution": lambda x: conv1d(x.mT, kernel, padding=REACH // 2).mT,
    }
    return {
        part: float((f(rows[:, order]) - f(rows)[:, order]).abs().max() / f(rows).abs().max())
        for part, f in asked.items()
    }


@torch.no_grad()
def multiply_both_ways(name: str, ids: Sequence[int], layer: int) -> tuple[Tensor, Tensor]:
    """A product as the two kinds of books write it: tokens as rows, X W, pos d_out; tokens as columns, W' X', d_out
    pos. W is W_Q of a block, which PyTorch keeps as W'."""
    x, weight = stream(name, ids, layer)[0], block_of(library.checkpoint(name).model, layer).attn.q.weight
    return x @ weight.T, weight @ x.T
