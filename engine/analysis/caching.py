"""What the KV cache costs and saves: its memory, the arithmetic of a token with it and without it, and the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import torch
from torch import Tensor

from engine.analysis.sizes import Work, forward
from engine.analysis.sizes.formula import Symbol
from engine.analysis.sizes.shape import stacks
from engine.analysis.sizes.work import mlp_work
from engine.generation.prompt import LAST
from engine.model.config import Attention, ModelConfig, kv_heads
from engine.model.layers.cache import KVCache
from engine.model.transformer import Transformer

REPEATS = 5


@dataclass(frozen=True)
class TokenTime:
    """Seconds until the logits behind token number `length` are there: `cached`, reading that one behind a cache of the
    others; `again`, reading all of them.
    """

    length: int
    cached: float
    again: float


def cache_bytes(config: ModelConfig, length: int, dtype: torch.dtype = torch.float32, source: int = 0) -> int:
    """Bytes of the tensors of a cache of one text of `length` tokens, whose encoder read `source` tokens."""
    return KVCache(config, 1, length, torch.empty(0, dtype=dtype, device="meta"), source).bytes


def multiply_adds_cached(config: ModelConfig, length: int, source: int = 0) -> int:
    """Multiply-adds of all matrix products for the logits behind token number `length`, the keys and values of the
    tokens before it, and of what an encoder read, being there.
    """
    own, stack = config.attention, config.layers
    width = config.d_model * config.head_width(own)
    found = stack * width * 2 * (own.heads + kv_heads(own)) + products(config, own, length)
    if config.encoder is not None:
        cross = config.cross_attention
        found += stack * 2 * config.d_model * config.head_width(cross) * cross.heads
        found += stack * 2 * source * cross.heads * config.head_width(cross)
    if config.mlp is not None:
        found += sum(work.flops for work in mlp_work(stacks(config)[-1], Symbol("n", 1))) // 2
    embedding = config.d_model * config.d_embed if config.embedding.width is not None else 0
    return found + embedding + sum(work.flops for work in of_the_end(config)) // 2


def multiply_adds_again(config: ModelConfig, length: int, source: int = 0) -> int:
    """The same where all tokens are read again; an encoder's result is kept all the same, and logits are made for the
    last token alone.
    """
    every = forward_work(config, length, source)
    kept = [work for work in every if work.block != "head" and "encoder." not in work.block]
    return sum(work.flops for work in (*kept, *of_the_end(config))) // 2


def forward_work(config: ModelConfig, length: int, source: int = 0) -> list[Work]:
    return forward(config, length) if config.encoder is None else forward(config, source, length)


def products(config: ModelConfig, attention: Attention, length: int) -> int:
    """Operations for scores and weighted values of one query, over all layers."""
    windowed = range(config.layers) if attention.windowed is None else attention.windowed
    near = sum(layer in windowed for layer in range(config.layers)) if attention.window is not None else 0
    keys = near * min(length, attention.window or length) + (config.layers - near) * length
    return 2 * keys * attention.heads * config.head_width(attention)


def of_the_end(config: ModelConfig) -> list[Work]:
    """The head's, for one position."""
    return [work for work in forward_work(config, 1, 1) if work.block == "head"]


@torch.inference_mode()
def token_times(
    model: Transformer, ids: Sequence[int], lengths: Sequence[int], source: Sequence[int] = ()
) -> Iterator[TokenTime]:
    """Measured here and now, for each of `lengths` within `ids`: medians of repetitions in turns.

    Raises ValueError for a length beyond the ids, and for ids that the model cannot read.
    """
    if lengths and not 1 <= min(lengths) <= max(lengths) <= len(ids):
        raise ValueError(f"lengths must lie in 1..{len(ids)}, the tokens given, got {min(lengths)}..{max(lengths)}.")
    read = torch.tensor([list(ids)], device=model.device)
    model.check(read)
    behind = torch.tensor([list(source)], device=model.device) if source else None
    memory = None if behind is None else model.encoder.forward_resid(behind)
    for length in lengths:
        cache = KVCache(model.config, 1, length, next(model.parameters()), len(source))
        cache.memory = memory
        if length > 1:
            logits_behind(model, read[:, : length - 1], cache, behind)
        elif behind is not None:
            logits_behind(model, read[:, :1], cache, behind)  # the keys and values of the source
            cache.rewind(0)

        def cached(length: int = length, cache: KVCache = cache) -> None:
            logits_behind(model, read[:, length - 1 : length], cache, behind)
            cache.rewind(length - 1)

        def again(length: int = length) -> None:
            if memory is None:
                model(read[:, :length], logits_at=LAST)
            else:
                model(behind, target=read[:, :length], start=len(model.encoder.blocks), memory=memory, logits_at=LAST)

        times = [(seconds(cached), seconds(again)) for _ in range(REPEATS + 1)][1:]  # the first warms up
        yield TokenTime(length, *(median(column) for column in zip(*times, strict=True)))


def logits_behind(model: Transformer, new: Tensor, cache: KVCache, source: Tensor | None) -> Tensor:
    if source is None:
        return model(new, cache=cache, logits_at=LAST)
    return model(source, target=new, cache=cache, logits_at=LAST)


def seconds(action: Callable[[], None]) -> float:
    begun = perf_counter()
    action()
    return perf_counter() - begun
