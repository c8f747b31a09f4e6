"""How much of a pattern the places of the tokens explain, whatever the tokens are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock

import torch
from torch import Tensor
from torch.nn.functional import pixel_shuffle, pixel_unshuffle

from engine.analysis.heads import mean_where
from engine.analysis.recorded_patterns import patterns, side_of, tokens
from engine.analysis.summarised_run import rerun_reduced, with_values
from engine.model.transformer import Transformer
from engine.runtime.batch import Input, batch
from engine.runtime.run import read_target, resolve_edits, run, stream
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
        again = run(model, read, keep, trace.edits, target=target, mask=trace.mask, logits_at=slice(-1, None))
        for mean, pattern in zip(means, patterns(again, side, crosses), strict=True):
            mean.add_(pattern, alpha=1 / texts)
    return torch.stack([agreement(one, mean, crosses) for one, mean in zip(mine, means, strict=True)])


class PositionalSteps:
    """`positional` a little at a time: `advance` until `done` is `steps`; `shares` is layer head, NaN of a layer that
    is not scored yet, or has no share.

    `trace` is a run of `model` on `read` (and `target`) under its edits that kept `streams`, as that of a `Glance`. A
    step runs one of the other texts through one layer, or the text itself, and then scores the layer: no text is read
    twice, and in memory is what leaves a layer of each, and the mean of one layer's patterns.
    """

    def __init__(
        self,
        model: Transformer,
        read: Input,
        trace: Trace,
        target: Input | None = None,
        side: str = "",
        texts: int = 8,
        seed: int = 0,
    ) -> None:
        side = side_of(trace, side)
        stack = model.config.encoder if side == "encoder" and model.config.encoder else model.config
        self.model, self.read, self.trace, self.target = model, read, trace, target
        self.blocks = [f"{side and side + '.'}blocks.{layer}." for layer in range(stack.layers)]
        self.others = other_texts(model, trace, side, False, texts, seed)
        self.memory = {n: trace[n] for n in trace if n.startswith("encoder.")} if side == "decoder" else {}
        self.shares = torch.full((stack.layers, stack.attention.heads), math.nan)
        self.steps = len(self.blocks) * (len(self.others) + 1) if self.others else 0
        self.done = 0
        self._going = self._score_layers()
        self._lock = Lock()  # several sessions may look at one text

    @property
    def scored_layers(self) -> int:
        """Layers, from the first on."""
        return self.done // (len(self.others) + 1) if self.others else len(self.blocks)

    @property
    def bytes(self) -> int:
        """Most that is in memory between two steps."""
        length, heads = self.trace[stream(self.model, self.blocks[0])].shape[1], self.shares.shape[1]
        width = self.model.config.d_model
        return 4 * (heads * length**2 + len(self.others) * length * width)

    @torch.no_grad()
    def advance(self) -> None:
        with self._lock:
            if self.done < self.steps:
                try:
                    next(self._going)
                except BaseException:  # a reading that was broken off begins anew
                    self.done, self._going = 0, self._score_layers()
                    raise
                self.done += 1

    def _score_layers(self) -> Iterator[None]:
        texts: list[Trace] = []  # as far as they were read
        for layer, block in enumerate(self.blocks):
            mean = torch.zeros(())
            for number, (read, target) in enumerate(self.others):
                if layer == 0:
                    texts.append(self._unread(read, target))
                mean, texts[number] = self._read_layer(block, texts[number], read, target, mean)
                yield
            hook = f"{block}attn.pattern"
            self.shares[layer] = rerun_reduced(
                self.model, self.read, {hook: partial(share_of, mean)}, self.trace, self.trace.edits,
                target=self.target, mask=self.trace.mask,
            )[hook]  # fmt: skip
            yield

    def _read_layer(
        self, block: str, text: Trace, read: Input, target: Input | None, mean: Tensor
    ) -> tuple[Tensor, Trace]:
        """`mean` with the layer's pattern of one more text, and that text as far as it is read then."""
        hook, after = f"{block}attn.pattern", stream(self.model, block)
        wanted: dict[str, Callable[[Tensor], Tensor]] = {
            hook: partial(add_share, mean, len(self.others)),
            after: Tensor.clone,
        }
        found = rerun_reduced(self.model, read, wanted, text, text.edits, target=target, mask=text.mask)
        return found[hook], with_values(text, self.memory | {after: found[after]})

    def _unread(self, read: Input, target: Input | None) -> Trace:
        """A run of another text that holds what its decoder has of its encoder; its edits are resolved once."""
        edits = resolve_edits(self.model, self.trace.edits, read, target, mask=self.trace.mask)
        ids, padding, encodings = batch(read, self.model.device)
        written, target_padding, target_encodings = read_target(self.model, target, ids, padding)
        return Trace(
            dict(self.memory), self.model.hooks, ids, padding, encodings, edits, self.trace.mask, slice(None), 0,
            written, target_encodings, target_padding,
        )  # fmt: skip


def add_share(mean: Tensor, texts: int, pattern: Tensor) -> Tensor:
    """head pos key: the mean so far and one of so many `texts`, whose pattern is batch head pos key."""
    return torch.add(mean, pattern[0].float(), alpha=1 / texts)


def share_of(mean: Tensor, pattern: Tensor) -> Tensor:
    return agreement(pattern[0].float(), mean)


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
