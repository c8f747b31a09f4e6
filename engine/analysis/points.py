"""Queries and keys of one head as points of one plane, where near means that a query attends to a key."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from engine.analysis.recorded_patterns import length, side_of
from engine.analysis.weights.projection import How, projection
from engine.runtime.trace import Trace


@dataclass(frozen=True)
class Joint:
    """Queries (pos d_head) and keys (key d_head) in one space, float64: q / `scale`, and k `scale` moved by one vector.

    Neither changes a pattern: q k stays what it is but for a number that a query gives to all its keys alike.
    `correlation` is that of distance and q k over all pairs, masked ones too, both less their mean over the keys of the
    query: at -1 the nearest key has the highest score. NaN where there is one key, or all are alike.
    """

    queries: Tensor
    keys: Tensor
    scale: float
    correlation: float


@dataclass(frozen=True)
class HeadPoints:
    """`queries` are pos 2, `keys` key 2, float32, of the vectors that hooks `read` hold, as `joint` lays them out.

    `explained` are the shares of the variance along the two axes; None for t-SNE, whose axes mean nothing.
    """

    queries: Tensor
    keys: Tensor
    explained: tuple[float, ...] | None
    joint: Joint
    read: tuple[str, str]


def head_points(
    trace: Trace,
    layer: int,
    head: int,
    side: str = "",
    crosses: bool = False,
    how: How = "pca",
) -> HeadPoints:
    """Projects, for the first text, the vectors whose products are the scores, so behind a norm or a rotation where
    there is one.

    `side` picks "encoder" or "decoder" of two stacks; `crosses` takes the target's queries and the source's keys. Heads
    that share a key share its vector. What is added to a score afterwards (ALiBi, relative positions) is not in it.
    t-SNE wants 4 points. Raises ValueError for a head that the layer does not have, KeyError for what was not recorded.
    """
    side = side_of(trace, "decoder" if crosses else side)
    block = f"{side}.blocks.{layer}." if side else f"blocks.{layer}."
    attention = block + ("cross_attn" if crosses else "attn")
    q, q_read = vectors(trace, attention, "q")
    k, k_read = vectors(trace, attention, "k")
    if not 0 <= head < q.shape[1]:
        raise ValueError(f"a head of {attention} must be in 0..{q.shape[1] - 1}, got {head}.")
    queries = q[: length(trace, side, 0), head]
    keys = k[: length(trace, "encoder" if crosses else side, 0), head * k.shape[1] // q.shape[1]]
    both = joint(queries, keys)
    rows = torch.cat([both.queries, both.keys])
    made = projection(rows, how, len(rows))
    points = made.points.split([len(queries), len(keys)])
    return HeadPoints(points[0], points[1], made.explained, both, (q_read, k_read))


def vectors(trace: Trace, attention: str, part: str) -> tuple[Tensor, str]:
    """The last that became of q or k (pos head d_head) before the two were multiplied, and its hook."""
    plain = f"{attention}.{part}"
    read = next((name for name in (f"{plain}_rotated", f"{plain}_norm.out") if name in trace.hooks), plain)
    return trace[read][0].reshape(trace[plain].shape[1:]), read


def shared_key_head(q: Tensor, k: Tensor, head: int) -> int:
    """Head of the keys that a head of queries reads, of `vectors`, pos head d_head."""
    return head * k.shape[1] // q.shape[1]


def joint(queries: Tensor, keys: Tensor) -> Joint:
    """Laid out after Yeh et al. 2023, "AttentionViz": keys moved onto the queries, and both scaled against each other.

    Their scale is the one at which distance and q k go together best. Ours is the one at which both spread alike: it
    makes sum |q|^2 + |k|^2 smallest, and with it the part of the distances that q k has no share in; the best one often
    draws all keys as one point.
    """
    q, k = queries.double(), keys.double()
    middle, moved = q.mean(0), k - k.mean(0)
    wide, narrow = rms_length(q - middle), rms_length(moved)
    scale = (wide / narrow) ** 0.5 if wide > 0 and narrow > 0 else 1.0
    laid = Joint(q / scale, moved * scale + middle / scale, scale, float("nan"))
    distances = torch.cdist(laid.queries, laid.keys)
    return replace(laid, correlation=correlation(rowwise(distances), rowwise(q @ moved.T)))


def rowwise(values: Tensor) -> Tensor:
    return values - values.mean(-1, keepdim=True)


def rms_length(centred: Tensor) -> float:
    """The root of the mean squared length."""
    return float(centred.square().sum(-1).mean().sqrt())


def correlation(a: Tensor, b: Tensor) -> float:
    """Correlation of values whose mean is 0; NaN where one of them does not vary."""
    norms = float(a.norm() * b.norm())
    return float((a * b).sum()) / norms if norms > 0 else float("nan")
