"""How much of each input reaches a position through all layers at once: attention rollout.

Abnar & Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3. A layer is read as A' = 0.5 A + 0.5 I,
the half that goes past the attention being the residual stream; A is the mean of its heads. `flow` reads it so too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.recorded_patterns import patterns, recorded_hooks, side_of
from engine.runtime.trace import Trace

Heads = Mapping[int, Sequence[int]]  # layer -> the heads that count in it; a layer it does not name counts all


def rollout(trace: Trace, side: str = "", start: int = 0, end: int | None = None, heads: Heads | None = None) -> Tensor:
    """Self-attention rollout of the first text, layer pos key, for the layers `start` up to `end`, not included.

    Element l is A'_(start + l) ... A'_start: the shares of what entered layer `start` in what left layer start + l. Its
    rows sum to 1. `side` picks "encoder" or "decoder" of two stacks. Raises ValueError for layers or heads that the run
    does not have, or did not record.
    """
    return torch.stack(list(roll_out(averaged_layers(trace, side, False, start, end, heads)))).float()


def roll_out(averages: Iterable[Tensor]) -> Iterator[Tensor]:
    """The product behind each layer, pos key in float64, of the means of each layer's heads, the first layer first."""
    product: Tensor | None = None
    for average in averages:
        product = add_residual(average) if product is None else add_residual(average) @ product
        yield product


@dataclass(frozen=True)
class CrossRollout:
    """The shares of the two texts in each position of a target, one row of both together summing to 1."""

    source: Tensor  # layer pos key, of the tokens that the encoder read
    target: Tensor  # layer pos key, of the tokens that the decoder read


def rollout_across(
    trace: Trace,
    start: int = 0,
    end: int | None = None,
    heads: Heads | None = None,
    cross_heads: Heads | None = None,
) -> CrossRollout:
    """The decoder's layers `start` up to `end`, rolled out to both texts of the first pair.

    The paper's product, applied to the graph with both stacks in it: a layer is first 0.5 A + 0.5 I of its
    self-attention, then half of what stands there and half of what its cross-attention fetches, which is the encoder's
    output and so the encoder's own rollout over all its layers. No gradients (Chefer et al. 2021) take part.
    """
    own = averaged_layers(trace, "decoder", False, start, end, heads)
    fetched = averaged_layers(trace, "decoder", True, start, end, cross_heads)
    encoded = rollout(trace, "encoder")[-1].double()
    sources, targets = zip(*rolled_both(encoded, zip(own, fetched, strict=True)), strict=True)
    return CrossRollout(torch.stack(sources).float(), torch.stack(targets).float())


def rolled_both(encoded: Tensor, averages: Iterable[tuple[Tensor, Tensor]]) -> Iterator[tuple[Tensor, Tensor]]:
    """Rolls out, as `roll_out` does, the means of a decoder layer: its self- and cross-attention, to source and target.

    `encoded` is the whole rollout of the encoder, pos key.
    """
    source = target = None
    for own, cross in averages:
        layer, fetched = add_residual(own), cross.double()
        if source is None or target is None:
            source, target = torch.zeros_like(fetched), torch.eye(len(layer), dtype=torch.float64)
        past = past_of(fetched)
        target, source = past * (layer @ target), past * (layer @ source) + 0.5 * fetched @ encoded
        yield source, target


def past_of(cross: Tensor) -> Tensor:
    """pos 1: what goes past a cross-attention (pos key): 0.5, and all of a row that sees nothing of the source."""
    return 1 - 0.5 * cross.sum(-1, keepdim=True)


def mixed_layers(
    trace: Trace, side: str, crosses: bool, start: int, end: int | None, heads: Heads | None
) -> list[Tensor]:
    """A' of each layer, pos key, in float64. A row that sees nothing is its residual alone, so all rows sum to 1."""
    return [add_residual(average) for average in averaged_layers(trace, side, crosses, start, end, heads)]


def add_residual(average: Tensor) -> Tensor:
    """A' of one layer."""
    average = average.double()
    return 0.5 * average + (1 - 0.5 * average.sum(-1)).diag()


def averaged_layers(
    trace: Trace, side: str, crosses: bool, start: int, end: int | None, heads: Heads | None
) -> list[Tensor]:
    """The mean of the chosen heads of each layer, pos key, in float64."""
    side, part = side_of(trace, side), f"{'cross_attn' if crosses else 'attn'}.pattern"
    found = dict(zip(recorded_hooks(trace, part, side), patterns(trace, side, crosses), strict=True))
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
