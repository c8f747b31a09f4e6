"""Patterns averaged over heads, layers or texts, and patterns weighted with what they move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from engine.analysis.recorded_patterns import patterns, recorded_hooks, side_of
from engine.analysis.weights.circuit import attention_of, writing_rows
from engine.model.transformer import Transformer
from engine.plurals import count_words
from engine.runtime.trace import Trace


@dataclass(frozen=True)
class AveragePattern:
    """`pattern` is layer head pos key; `texts` (pos) is how many texts each row is the mean of."""

    pattern: Tensor
    texts: Tensor


def over_heads(
    trace: Trace,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
    side: str = "",
    crosses: bool = False,
) -> Tensor:
    """The mean pattern of the chosen layers and heads (None: all), pos key, for the first text of the batch.

    Raises ValueError for a choice of none, or of one that is not there.
    """
    found = patterns(trace, side, crosses)
    layers = check_indices("layers", layers, len(found))
    heads = check_indices("heads", heads, len(found[0]))
    total = torch.zeros_like(found[0][0])
    for layer in layers:
        total += found[layer][heads].mean(0)
    return total / len(layers)


def over_texts(traces: Iterable[Trace], fewest: int = 1, side: str = "", crosses: bool = False) -> AveragePattern:
    """The mean pattern by position, of every text of every trace; a generator of traces is held one at a time.

    A row is the mean over the texts that reach its position, and is left out where fewer than `fewest` do. Every row
    still sums to 1; one that looks ahead is a mean over texts that end at different keys. Raises ValueError where no
    row has that many texts.
    """
    total, counts = torch.zeros(0, 0, 0, 0), torch.zeros(0, dtype=torch.long)
    for trace in traces:
        for text in range(len(trace.ids)):
            found = torch.stack(patterns(trace, side, crosses, text))
            if counts.numel() and found.shape[:2] != total.shape[:2]:
                made = " and ".join(
                    f"{count_words(len(one), 'layer')} of {count_words(one.shape[1], 'head')}" for one in (total, found)
                )
                raise ValueError(f"texts are averaged over runs of one model, got {made}; run them all on the same.")
            total, counts = add_padded(total, found), add_padded(counts, torch.ones(found.shape[-2], dtype=torch.long))
    kept = int((counts >= fewest).sum())
    if not kept:
        most = int(counts.max()) if len(counts) else 0
        raise ValueError(f"a row must be the mean of at least {fewest} texts, got {most} at most; give more texts.")
    pattern = total[..., :kept, :] / counts[:kept, None]
    attended = pattern.amax((0, 1, 2)).nonzero()
    last = int(attended.max()) + 1 if len(attended) else 0
    return AveragePattern(pattern[..., : last if crosses else max(last, kept)], counts[:kept])


@torch.no_grad()
def by_norm(
    model: Transformer, trace: Trace, layer: int, side: str = "", crosses: bool = False, share: bool = False
) -> Tensor:
    """|pattern[q, k] v[k] W_O| of each head, head pos key, for the first text of the batch: what a weight moves.

    Kobayashi et al. 2020, "Attention is Not Only a Weight". v carries its bias, W_O's is no head's and left out, and of
    a norm behind the attention its bias and what it divides a row by. With `share` a row is divided by its sum, so that
    it reads like a pattern; a row that moves nothing stays 0.
    The trace must hold the layer's pattern and v.
    """
    side = side_of(trace, side)
    attention_of(model, layer, side, crosses)  # there is one
    block = f"{f'{side}.' if side else ''}blocks.{layer}.{'cross_attn' if crosses else 'attn'}"
    recorded = recorded_hooks(trace, f"{'cross_attn' if crosses else 'attn'}.pattern", side)
    pattern = patterns(trace, side, crosses)[recorded.index(f"{block}.pattern")]
    v = trace[f"{block}.v"][0, : pattern.shape[-1]]
    norms = pattern.abs() * value_norms(writing_rows(model, layer, side, crosses), v)[:, None]
    return norms / norms.sum(-1, keepdim=True).clamp(min=torch.finfo(norms.dtype).tiny) if share else norms


def value_norms(W_O: Tensor, v: Tensor) -> Tensor:
    """|v W_O| of each query head, head key, in float32; `v` is key kv_head d_head and W_O head d_head d_model."""
    group = len(W_O) // v.shape[1]
    return torch.stack([(v[:, i // group] @ W_O[i]).float().norm(dim=-1) for i in range(len(W_O))])


def check_indices(what: str, given: Sequence[int] | None, count: int) -> list[int]:
    picked = list(range(count)) if given is None else list(given)
    wrong = [one for one in picked if not 0 <= one < count]
    if wrong or not picked:
        raise ValueError(f"{what} must be some of 0 to {count - 1}, got {wrong or 'none'}.")
    return picked


def add_padded(total: Tensor, more: Tensor) -> Tensor:
    """The sum of two tensors of which either may be shorter at the end of its last one or two axes."""
    if not total.numel():
        return more
    return grown(total, more) + grown(more, total)


def grown(tensor: Tensor, other: Tensor) -> Tensor:
    """Pads the last one or two axes with zeros where `other` is longer."""
    missing = [max(theirs - mine, 0) for mine, theirs in zip(tensor.shape, other.shape, strict=True)]
    return pad(tensor, [0, missing[-1], 0, missing[-2]] if tensor.dim() > 1 else [0, missing[-1]])
