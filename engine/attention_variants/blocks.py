"""Attention within blocks of an image: each block of queries shares one block of keys around it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from engine.attention_variants.cost import FLOAT, Cost

Size = tuple[int, int]  # height, width


def local_2d(
    q: Tensor, k: Tensor, v: Tensor, grid: Size, block: Size, margin: Size = (0, 0), *, causal: bool = False
) -> Tensor:
    """2-D local attention (Parmar et al. 2018, Image Transformer, section 3.2): batch head pos d_head, `pos` the pixels
    of `grid` in raster order.

    The image is cut into query blocks of size `block`. All queries of a block attend to its memory block: the query
    block with `margin` more pixels on every side. With `causal`, for generation, it is extended to the top, the left
    and the right only, and a query sees what was generated before it and itself; blocks are generated one after
    another in raster order, and so are the pixels inside each. Without a margin this is plain attention inside blocks.
    Raises ValueError where the sizes do not fit.
    """
    _check(q.shape[-2], grid, block, margin)
    z = scaled_dot_product_attention(
        _query_blocks(_image(q, grid), block),
        _memory_blocks(_image(k, grid), block, margin, causal),
        _memory_blocks(_image(v, grid), block, margin, causal),
        attn_mask=_block_mask(grid, block, margin, causal, q.device),
    )
    return _raster(z, grid, block).reshape(q.shape)


def local_2d_cost(
    grid: Size, heads: int, d_head: int, block: Size, margin: Size = (0, 0), *, causal: bool = False
) -> Cost:
    """Counts, with m pixels in a memory block: 2 n h m d multiply-adds, the grid rounded up to whole blocks; each
    block's own copy of its keys and values, the queries, the mask as booleans and as floats (one for all heads), and
    the result.
    """
    blocks, area, memory = _sizes(grid, block, margin, causal)
    rows, masked = blocks * area, blocks * (area if causal else 1) * memory
    vectors = heads * d_head * (2 * rows + 2 * blocks * memory)
    return Cost(2 * rows * heads * memory * d_head, FLOAT * (vectors + heads * rows + masked) + masked)


def allowed_2d(grid: Size, block: Size, margin: Size = (0, 0), *, causal: bool = False) -> Tensor:
    """The same as a matrix pos key of booleans, for a picture."""
    _check(grid[0] * grid[1], grid, block, margin)
    order = _generation_order(grid, block, torch.device("cpu")).flatten()
    row, column = (axis.flatten() for axis in torch.meshgrid(*map(torch.arange, grid), indexing="ij"))
    allowed = torch.ones(len(row), len(row), dtype=torch.bool)
    for place, size, extra, downward in ((row, block[0], margin[0], not causal), (column, block[1], margin[1], True)):
        start = place // size * size
        allowed &= (place >= start[:, None] - extra) & (place < start[:, None] + size + (extra if downward else 0))
    return allowed & (order <= order[:, None]) if causal else allowed


def _check(length: int, grid: Size, block: Size, margin: Size) -> None:
    if grid[0] * grid[1] != length:
        raise ValueError(f"a grid of {grid[0]} x {grid[1]} has {grid[0] * grid[1]} pixels, got {length}.")
    if min(block) < 1 or min(margin) < 0:
        raise ValueError(f"a block must have at least 1 x 1 pixels and a margin at least 0, got {block} and {margin}.")


def _sizes(grid: Size, block: Size, margin: Size, causal: bool) -> tuple[int, int, int]:
    """Blocks, pixels of a query block, pixels of a memory block."""
    blocks = -(-grid[0] // block[0]) * -(-grid[1] // block[1])
    height = block[0] + margin[0] * (1 if causal else 2)
    return blocks, block[0] * block[1], height * (block[1] + 2 * margin[1])


def _generation_order(grid: Size, block: Size, device: torch.device) -> Tensor:
    """1 row column 1: when each pixel is generated."""
    down, across = -(-grid[0] // block[0]), -(-grid[1] // block[1])
    order = torch.arange(down * across * block[0] * block[1], device=device).view(1, down * across, -1, 1)
    return _raster(order, grid, block).view(1, *grid, 1)


def _block_mask(grid: Size, block: Size, margin: Size, causal: bool, device: torch.device) -> Tensor:
    """1 block pos key: a pixel that exists and, where `causal`, is generated no later; pos is 1 where all are alike."""
    order = _generation_order(grid, block, device)
    keys = _memory_blocks(order, block, margin, causal, fill=-1).mT
    return (keys >= 0) & (keys <= _query_blocks(order, block, fill=-1)) if causal else keys >= 0


def _image(x: Tensor, grid: Size) -> Tensor:
    return x.reshape(-1, *grid, x.shape[-1])


def _query_blocks(image: Tensor, block: Size, fill: int = 0) -> Tensor:
    """... row column d -> ... block pos d."""
    below, right = -image.shape[1] % block[0], -image.shape[2] % block[1]
    image = pad(image, (0, 0, 0, right, 0, below), value=fill)
    parts = image.unflatten(2, (-1, block[1])).unflatten(1, (-1, block[0]))  # batch down row across column d
    return parts.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def _memory_blocks(image: Tensor, block: Size, margin: Size, causal: bool, fill: int = 0) -> Tensor:
    """... row column d -> ... block key d, neighbouring blocks sharing pixels."""
    below, right = -image.shape[1] % block[0], -image.shape[2] % block[1]
    (tall, wide), beneath = margin, 0 if causal else margin[0]
    image = pad(image, (0, 0, wide, right + wide, tall, below + beneath), value=fill)
    parts = image.unfold(1, tall + block[0] + beneath, block[0]).unfold(2, wide + block[1] + wide, block[1])
    return parts.movedim(3, -1).flatten(3, 4).flatten(1, 2)  # from batch down across d row column


def _raster(blocks: Tensor, grid: Size, block: Size) -> Tensor:
    """... block pos d -> ... pos d in raster order, what was added to fill the blocks cut off."""
    down, across = -(-grid[0] // block[0]), -(-grid[1] // block[1])
    parts = blocks.reshape(len(blocks), down, across, *block, blocks.shape[-1]).transpose(2, 3)
    return parts.flatten(3, 4).flatten(1, 2)[:, : grid[0], : grid[1]].flatten(1, 2)
