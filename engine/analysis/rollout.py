"""How much of each input reaches a position through all layers at once: attention rollout and attention flow.

Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3. Both read a layer as
A' = 0.5 A + 0.5 I, the half that goes past the attention being the residual stream; A is the mean of its heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.analysis.recorded import names, patterns, side_of
from engine.trace import Trace

Heads = Mapping[int, Sequence[int]]  # layer -> the heads that count in it; a layer it does not name counts all
SCALE = 2**30  # a capacity of 1; what leaves a position sums to 1, so no flow leaves the range of an int32
MOST_EDGES = 200_000  # 12 layers of 128 tokens: a second or two; twice the tokens take more than ten times as long


def rollout(trace: Trace, side: str = "", start: int = 0, end: int | None = None, heads: Heads | None = None) -> Tensor:
    """Self-attention rollout of the first text, layer pos key, for the layers `start` up to `end`, not included.

    Element l is A'_(start + l) ... A'_start: the shares of what entered layer `start` in what left layer start + l. Its
    rows sum to 1. `side` picks "encoder" or "decoder" of two stacks. Raises ValueError for layers or heads that the run
    does not have, or did not record.
    """
    mixed = mixed_layers(trace, side, False, start, end, heads)
    products = [mixed[0]]
    for layer in mixed[1:]:
        products.append(layer @ products[-1])
    return torch.stack(products).float()


@dataclass(frozen=True)
class Crossed:
    """The shares of the two texts in each position of a target, one row of both together summing to 1."""

    source: Tensor  # layer pos key, of the tokens that the encoder read
    target: Tensor  # layer pos key, of the tokens that the decoder read


def crossed(
    trace: Trace,
    start: int = 0,
    end: int | None = None,
    heads: Heads | None = None,
    cross_heads: Heads | None = None,
) -> Crossed:
    """The decoder's layers `start` up to `end`, rolled out to both texts of the first pair.

    The paper's product, applied to the graph with both stacks in it: a layer is first 0.5 A + 0.5 I of its
    self-attention, then half of what stands there and half of what its cross-attention fetches, which is the encoder's
    output and so the encoder's own rollout over all its layers. No gradients (Chefer et al. 2021) take part.
    """
    own = mixed_layers(trace, "decoder", False, start, end, heads)
    fetched = averaged_layers(trace, "decoder", True, start, end, cross_heads)
    encoded = rollout(trace, "encoder")[-1].double()
    target, source = torch.eye(len(own[0]), dtype=torch.float64), torch.zeros_like(fetched[0])
    targets, sources = [], []
    for mixed, cross in zip(own, fetched, strict=True):
        past = 1 - 0.5 * cross.sum(-1, keepdim=True)  # 0.5; all of a row that sees nothing of the source
        target, source = past * (mixed @ target), past * (mixed @ source) + 0.5 * cross @ encoded
        targets.append(target)
        sources.append(source)
    return Crossed(torch.stack(sources).float(), torch.stack(targets).float())


def flow(
    trace: Trace, pos: int, side: str = "", start: int = 0, end: int | None = None, heads: Heads | None = None
) -> Tensor:
    """The maximum flow from position `pos` behind the layers to each of their inputs, key, in the same self-attention.

    Positions at every layer are nodes, and A' the capacities between them; each input is a problem of its own (Dinic's
    algorithm, scipy's). Capacities are whole 2^-30ths: a flow is exact to 2^-31 for each edge of its narrowest cut.
    Raises ValueError for more than MOST_EDGES edges, layers x pos x key, or a position outside the text.
    """
    mixed = torch.stack(mixed_layers(trace, side, False, start, end, heads))
    layers, count, _ = mixed.shape
    if not 0 <= pos < count:
        raise ValueError(f"a position must be in 0..{count - 1}, got {pos}.")
    if mixed.numel() > MOST_EDGES:
        raise ValueError(
            f"attention flow reads at most {MOST_EDGES:,} weights (layers x pos x key), got {layers} x {count} x "
            f"{count} = {mixed.numel():,}; shorten the text, take fewer layers, or use rollout."
        )
    return torch.tensor(flows(mixed.numpy(), pos), dtype=torch.float32)


def flows(mixed: np.ndarray, pos: int) -> list[float]:
    from scipy.sparse import csr_array  # type: ignore[import-untyped]  # slow to import
    from scipy.sparse.csgraph import maximum_flow  # type: ignore[import-untyped]

    layers, count, _ = mixed.shape
    capacity = np.rint(mixed * SCALE).astype(np.int32)
    layer, query, key = np.nonzero(capacity)
    edges = ((layer + 1) * count + query, layer * count + key)
    graph = csr_array((capacity[layer, query, key], edges), shape=((layers + 1) * count,) * 2)
    return [maximum_flow(graph, layers * count + pos, sink).flow_value / SCALE for sink in range(count)]


def mixed_layers(
    trace: Trace, side: str, crosses: bool, start: int, end: int | None, heads: Heads | None
) -> list[Tensor]:
    """A' of each layer, pos key, in float64. A row that sees nothing is its residual alone, so all rows sum to 1."""
    found = averaged_layers(trace, side, crosses, start, end, heads)
    return [0.5 * one + (1 - 0.5 * one.sum(-1)).diag() for one in found]


def averaged_layers(
    trace: Trace, side: str, crosses: bool, start: int, end: int | None, heads: Heads | None
) -> list[Tensor]:
    """The mean of the chosen heads of each layer, pos key, in float64."""
    side, part = side_of(trace, side), f"{'cross_attn' if crosses else 'attn'}.pattern"
    found = dict(zip(names(trace, part, side), patterns(trace, side, crosses), strict=True))
    before = f"{side}.blocks." if side else "blocks."
    count = sum(name.startswith(before) and name.endswith(f".{part}") for name in trace.hooks)
    last = count if end is None else end
    if not 0 <= start < last <= count:
        raise ValueError(f"layers must be a part of 0..{count}, its end not included, got {start}..{last}.")
    wanted = {layer: f"{before}{layer}.{part}" for layer in range(start, last)}
    for name in wanted.values():
        if name not in found:
            raise ValueError(f"every layer from {start} to {last - 1} must be recorded, and {name} was not; keep it.")
    return [mean_of(found[name], layer, (heads or {}).get(layer)) for layer, name in wanted.items()]


def mean_of(pattern: Tensor, layer: int, heads: Sequence[int] | None) -> Tensor:
    if heads is None:
        return pattern.mean(0, dtype=torch.float64)
    if not heads or not all(0 <= head < len(pattern) for head in heads):
        raise ValueError(f"layer {layer} has heads 0..{len(pattern) - 1}, got {list(heads)}; name some of these.")
    return pattern[list(heads)].mean(0, dtype=torch.float64)
