"""The price of a token: operations and bytes counted, with the KV cache and without, and seconds measured here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from engine.analysis.caching import (
    TokenTime,
    cache_bytes,
    multiply_adds_again,
    multiply_adds_cached,
    products,
    token_times,
)
from engine.analysis.sizes.formula import Symbol
from engine.analysis.sizes.shape import stacks
from engine.analysis.sizes.work import mlp_work
from engine.attention_variants.measure import ALONE
from engine.model.config import ModelConfig
from engine.model.presets import NAMED
from engine.runtime import library

MOST_MEASURED = 256  # tokens


def config_of(name: str) -> ModelConfig:
    """The configuration of a published model, or of one that comes with Loupe."""
    return NAMED[name].config if name in NAMED else library.checkpoint(name).config


# --- with the KV cache and without ---


@dataclass(frozen=True)
class TokenCount:
    """Multiply-adds: `cached`, where the keys and values of the tokens before are kept; `again`, where all are read
    again."""

    length: int
    cached: int
    again: int


def count_token(name: str, length: int) -> TokenCount:
    """Counts for the logits after token number `length`."""
    config = config_of(name)
    return TokenCount(length, multiply_adds_cached(config, length), multiply_adds_again(config, length))


def count_text(name: str, length: int) -> TokenCount:
    """Counts for a text that is written token by token, up to the logits after number `length`."""
    each = [count_token(name, n) for n in range(1, length + 1)]
    return TokenCount(length, sum(one.cached for one in each), sum(one.again for one in each))


def measure_tokens(name: str, ids: Sequence[int], lengths: Sequence[int]) -> list[TokenTime]:
    """Seconds of one token after the text, on this machine; a longer one is the text again and again."""
    text = [ids[at % len(ids)] for at in range(max(lengths))]
    with ALONE:
        return list(token_times(library.checkpoint(name).model, text, lengths))


# --- the cache ---


def kv_bytes(layers: int, kv_heads: int, d_head: int, tokens: int, number: int) -> int:
    """2 L H_kv d_head n b: a key and a value for each layer, head of keys and values, and token, of d_head numbers of
    `number` bytes (Shazeer 2019, section 3; Ainslie et al. 2023)."""
    return 2 * layers * kv_heads * d_head * tokens * number


# --- attention and the MLP ---


@dataclass(frozen=True)
class TokenParts:
    """Multiply-adds of one token after `length`, all layers: scores and weighted values, and the `mlp`; and the `bytes`
    of keys and values that it looks at."""

    length: int
    attention: int
    mlp: int
    bytes: int


def count_parts(name: str, length: int, window: int | None = None, number: int = 2) -> TokenParts:
    """With a `window`, every layer keeps the last so many tokens; a number of the cache takes `number` bytes."""
    config = config_of(name)
    attention = config.attention if window is None else replace(config.attention, window=window, windowed=None)
    mlp = sum(work.flops for work in mlp_work(stacks(config)[-1], Symbol("n", 1))) // 2
    kept = cache_bytes(config, min(length, window or length), torch.float32) * number // 4
    return TokenParts(length, products(config, attention, length), mlp, kept)


def find_crossing(name: str) -> int:
    """The number of tokens at which scores and weighted values take as much as the MLP: d_mlp with two matrices of d x
    d_mlp and heads that are d wide together."""
    one = count_parts(name, 1)
    return one.mlp // one.attention
