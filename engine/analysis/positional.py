"""How much of a pattern the places of the tokens explain, whatever the tokens are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pixel_shuffle, pixel_unshuffle

from engine.analysis.heads import mean_where
from engine.analysis.recorded_patterns import patterns, side_of, tokens
from engine.model.transformer import Transformer
from engine.runtime.batch import Input
from engine.runtime.run import run
from engine.runtime.trace import Trace
from engine.tokenizers.encoding import Encoding


@torch.no_grad()
def positional(
    model: Transformer, trace: Trace, side: str = "", crosses: bool = False, texts: int = 8, seed: int = 0
) -> Tensor:
    """1 - the attention variability of each head (Vig & Belinkov 2019), layer head, for the first text of `trace`.

    That is the total variation distance of each row from its mean over `texts` other orders of the same tokens (of the
    patches of a picture), drawn from `seed` and read by `model` with the edits and the mask of `trace`; averaged over
    all positions but the first, of cross-attention over all. An encoder's source is reordered, a decoder's target, and
    both for `crosses`. Special tokens, a target's first and the marks of an infill stay in place. NaN where there is no
    other order. Takes `texts` runs, and the memory of the patterns of two beside `trace`.
    """
    side = side_of(trace, side)
    mine = patterns(trace, side, crosses)
    others = other_texts(model, trace, side, crosses, texts, seed)
    means = [torch.full_like(one, 0.0 if others else math.nan) for one in mine]
    prefix = f"{side}." if side else ""
    keep = f"{prefix}blocks.*.{'cross_attn' if crosses else 'attn'}.pattern"
    for read, target in others:
        again = run(
            model, read, keep, trace.edits, target=target, mask=trace.mask, logits_at=slice(-1, None)
        )
        for mean, pattern in zip(means, patterns(again, side, crosses), strict=True):
            mean.add_(pattern, alpha=1 / texts)
    return torch.stack([agreement(one, mean, crosses) for one, mean in zip(mine, means, strict=True)])


def agreement(pattern: Tensor, mean: Tensor, crosses: bool = False) -> Tensor:
    """1 - the total variation distance of the rows, averaged over them; both are head pos key, the result head."""
    counted = pattern.sum(-1) > 0
    counted[..., : 0 if crosses else 1] = False
    return mean_where(1 - (pattern - mean).abs().sum(-1) / 2, counted)


def other_texts(
    model: Transformer, trace: Trace, side: str, crosses: bool, texts: int, seed: int
) -> list[tuple[Input, Input | None]]:
    """Inputs in another order, and those of the decoder, `texts` of them; empty where there is no other order."""
    generator = torch.Generator().manual_seed(seed)
    sources = reordered_source(model, trace, texts, generator) if crosses or side != "decoder" else None
    targets = reordered_target(trace, texts, generator) if side == "decoder" else None
    if sources is None and targets is None:
        return []
    if sources is None:
        sources = [as_read(tokens(trace, "encoder"), trace.encodings)] * texts
    if trace.target is None:
        return [(read, None) for read in sources]
    targets = targets or [as_read(tokens(trace, "decoder"), trace.target_encodings)] * texts
    return list(zip(sources, targets, strict=True))


def reordered_source(
    model: Transformer, trace: Trace, texts: int, generator: torch.Generator
) -> Sequence[Input] | None:
    patches = model.config.embedding.patches
    if patches is not None:
        squares = pixel_unshuffle(trace.ids[:1], patches.size).flatten(2)  # 1 pixel patch
        free = torch.ones(patches.count, dtype=torch.bool)
        found = orders(squares[0].mT, free, texts, generator)
        grid = (patches.side, patches.side)
        return found and [pixel_shuffle(squares[..., order].unflatten(2, grid), patches.size) for order in found]
    ids = tokens(trace, "encoder" if trace.target is not None else "")
    assert ids is not None
    fixed = special(ids, trace.encodings)
    if model.config.infill is not None:
        fixed |= (ids == model.config.infill.mask) | (ids == model.config.infill.start)
    found = orders(ids[:, None], ~fixed, texts, generator)
    return found and [as_read(ids[order], trace.encodings) for order in found]


def reordered_target(trace: Trace, texts: int, generator: torch.Generator) -> Sequence[Input] | None:
    ids = tokens(trace, "decoder")
    assert ids is not None
    fixed = special(ids, trace.target_encodings)
    fixed[0] = True
    found = orders(ids[:, None], ~fixed, texts, generator)
    return found and [as_read(ids[order], trace.target_encodings) for order in found]


def special(ids: Tensor, encodings: Sequence[Encoding]) -> Tensor:
    """bool pos."""
    return torch.tensor(encodings[0].special) if encodings else torch.zeros(len(ids), dtype=torch.bool)


def as_read(ids: Tensor | None, encodings: Sequence[Encoding]) -> Input:
    """`ids` with the segments of the text they come from, where there is one."""
    assert ids is not None
    return replace(encodings[0], ids=tuple(ids.tolist())) if encodings else ids


def orders(rows: Tensor, free: Tensor, count: int, generator: torch.Generator) -> list[Tensor] | None:
    """`count` orders of `rows` (pos ...) that move those that are `free` (bool pos) and give another text.

    None where there is none, because all that is free is the same.
    """
    places = free.nonzero().flatten()
    if not len(places) or bool((rows[places] == rows[places[0]]).all()):
        return None
    found: list[Tensor] = []
    while len(found) < count:
        order = torch.arange(len(rows))
        order[places] = places[torch.randperm(len(places), generator=generator)]
        if not torch.equal(rows[order], rows):
            found.append(order)
    return found
