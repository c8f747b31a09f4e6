"""What positions do to queries, keys and scores once an edit gave tokens other positions than those they were read at.

`ids` (pos) says where each token stands, NOWHERE that it has no position: it is not turned, and no bias reaches it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.config import Positions
from engine.model.layers.position import (
    NOWHERE,
    Rotation,
    Rotations,
    alibi_bias,
    alibi_slopes,
    distance_rows,
    relative_buckets,
    rotation,
)
from engine.model.layers.rotary import rotary_frequencies


def has_position(ids: Tensor) -> Tensor:
    """pos 1: whether a token has a position."""
    return (ids != NOWHERE)[:, None]


def check_within(ids: Tensor, last: int | None) -> None:
    """Raises ValueError for a position below 0 or, where there is a `last` one, beyond it."""
    low, high = (int(end) for end in ids.aminmax())
    if low < NOWHERE:
        raise ValueError(f"a token cannot stand before the first position, got {low}; shift by less.")
    if last is not None and high > last:
        raise ValueError(f"a token's position must lie in 0..{last} here, got {high}; shift by less.")


def moved_rotation(ids: Tensor, own: Rotations, positions: Positions, length: int) -> Rotations:
    """The rotations of tokens at `ids` in a text of `length`; `own` are those of their own positions.

    Tokens with two positions take both from the token of this text that stands at the id.
    """
    first, second = own
    if isinstance(first, tuple) and isinstance(second, tuple):
        check_within(ids, first[0].shape[-2] - 1)
        return override_rotation(ids, first, positions, length), override_rotation(ids, second, positions, length)
    assert isinstance(first, Tensor) and isinstance(second, Tensor)
    if positions.grid:  # a patch takes the place of another
        check_within(ids, len(first) - 1)
        return override_rotation(ids, (first, second), positions, length)
    check_within(ids, None)
    frequencies, stretch = rotary_frequencies(first.shape[-1], positions, length)
    cos, sin = rotation(ids.clamp(min=0), frequencies.to(ids.device), positions.pairs, stretch)
    return cos.to(first.dtype), sin.to(first.dtype)


def override_rotation(ids: Tensor, own: Rotation, positions: Positions, length: int) -> Rotation:
    cos, sin = (part[..., ids.clamp(min=0), :] for part in own)
    _, stretch = rotary_frequencies(cos.shape[-1], positions, length)
    return torch.where(has_position(ids), cos, stretch), torch.where(has_position(ids), sin, 0.0)


def moved_bias(
    ids: Tensor, key_ids: Tensor, own: Tensor, table: Tensor | None, positions: Positions, both_sides: bool
) -> Tensor:
    """head pos key; `own` is the bias where nothing is moved, `table` (head bucket) what each relative bucket adds.

    A distance from `farthest` on falls into the last bucket, so that no shift is too far.
    """
    check_within(ids, own.shape[1] - 1 if positions.picture_bias is not None else None)
    if positions.picture_bias is not None:  # a patch takes the place of another
        bias = own[:, ids.clamp(min=0)][:, :, key_ids.clamp(min=0)]
    elif table is None:
        bias = alibi_bias(alibi_slopes(len(own)).to(own.device), ids, key_ids).to(own.dtype)
    else:
        bias = table[:, relative_buckets(ids, key_ids, positions, both_sides)]
    return torch.where(has_position(ids) & has_position(key_ids).T, bias, 0.0)


def moved_rows(ids: Tensor, key_ids: Tensor, positions: Positions) -> tuple[Tensor, Tensor]:
    """Which vector of disentangled positions a distance has, and whether both tokens have a position: both pos key."""
    check_within(ids, None)
    return distance_rows(ids, key_ids, positions), has_position(ids) & has_position(key_ids).T
