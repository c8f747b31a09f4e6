"""The KV cache: the lengths of its keys and values, what they cost and save by length, and measured times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from engine.analysis.caching import TokenTime, cache_bytes, multiply_adds_again, multiply_adds_cached, token_times
from engine.generation.prompt import Reader
from engine.model.config import ModelConfig, kv_heads
from engine.model.layers.cache import KVCache, LayerCache
from engine.model.presets import NAMED
from views.core.table_files import Table
from views.generate.session import GenerationContext

POINTS = 64  # of a curve, at most
REFERENCE = "gpt2"  # the shape that a model's memory is compared with


@dataclass(frozen=True)
class CachedPrompt:
    """The cache once the prompt and what is `begun` behind it are read, as the next token finds it."""

    writing: GenerationContext
    begun: tuple[int, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """Positions that are read; the last token of a text that fills the context takes none."""
        return (*self.writing.prompt.ids, *self.begun)[: self.config.context]

    @property
    def config(self) -> ModelConfig:
        return self.writing.checkpoint.config

    @property
    def source(self) -> int:
        return len(self.writing.prompt.source)

    @cached_property
    def cache(self) -> KVCache:
        with torch.inference_mode():
            reader = Reader(self.writing.prompt, len(self.begun) + 1)
            reader.read([self.ids])
        return reader.cache


def cache_header(found: CachedPrompt) -> dict[str, Any]:
    """`cell` are the bytes of a key and a value of one head at one position, `column` those of a position."""
    writing, config = found.writing, found.config
    sizes = heads_of(found.cache.layers) if config.layers else {}
    return {
        "pieces": [writing.piece(id) for id in found.ids],
        "given": len(writing.prompt.ids),
        "layers": config.layers,
        "queries": config.attention.heads,
        **sizes,
        "dtype": str(dtype_of(writing)).removeprefix("torch."),
        "bytes": found.cache.bytes,
        "source": [writing.piece(id) for id in writing.prompt.source] or None,
        "cross": heads_of(found.cache.cross) if found.cache.cross else None,
        "cached": multiply_adds_cached(config, len(found.ids), found.source),
        "again": multiply_adds_again(config, len(found.ids), found.source),
    }


def heads_of(layers: Sequence[LayerCache]) -> dict[str, int]:
    _, heads, _, width = layers[0].k.shape
    number = layers[0].k.element_size()
    return {"heads": heads, "width": width, "number": number, "cell": 2 * width * number}


def cache_arrays(found: CachedPrompt) -> dict[str, Tensor]:
    """layer head pos, of each the length of the vector; `cross.k` and `cross.v` layer head source."""
    cache, length = found.cache, len(found.ids)
    arrays = {name: norms([getattr(layer, name)[0, :, :length] for layer in cache.layers]) for name in "kv"}
    if cache.cross:
        arrays |= {f"cross.{name}": norms([getattr(layer, name)[0] for layer in cache.cross]) for name in "kv"}
    return arrays


def norms(layers: Sequence[Tensor]) -> Tensor:
    return torch.stack([layer.float().norm(dim=-1) for layer in layers])


def dtype_of(writing: GenerationContext) -> torch.dtype:
    return next(writing.checkpoint.model.parameters()).dtype


def costs(config: ModelConfig, source: int, dtype: torch.dtype) -> dict[str, Any]:
    """Counts at every length: multiply-adds of its last token with the cache and without, bytes of the cache, and to
    compare them with, those where each query head had keys and values of its own, and of the reference.
    """
    lengths = spread(config.context, POINTS)
    wide = own_heads(config)
    reference = NAMED[REFERENCE].config
    return {
        "lengths": lengths,
        "cached": [multiply_adds_cached(config, n, source) for n in lengths],
        "again": [multiply_adds_again(config, n, source) for n in lengths],
        "bytes": [cache_bytes(config, n, dtype, source) for n in lengths],
        "wide": None if wide == config else [cache_bytes(wide, n, dtype, source) for n in lengths],
        "reference": [cache_bytes(reference, n, dtype) for n in lengths],
        "reference_each": cache_bytes(reference, 1, dtype),
        "reference_context": reference.context,
        "reference_bytes": cache_bytes(reference, reference.context, dtype),
        "times": spread(config.context, 8),
    }


def own_heads(config: ModelConfig) -> ModelConfig:
    """Configuration in which every query head has keys and values of its own."""
    attention = config.attention
    if kv_heads(attention) == attention.heads:
        return config
    return replace(config, attention=replace(attention, kv_heads=None))


def spread(last: int, count: int) -> list[int]:
    """1 and `last` with even steps between them, `count` numbers or a few less."""
    step = max(1, -(-last // count))
    return sorted({1, *range(step, last, step), last})


def measure_token(found: CachedPrompt, length: int) -> TokenTime:
    """Seconds of one token at a length: of the text that is there, and where it is shorter, of its last token again and
    again."""
    ids = [*found.ids[:length], *[found.ids[-1]] * (length - len(found.ids))]
    prompt = found.writing.prompt
    return next(iter(token_times(found.writing.checkpoint.model, ids, [length], prompt.source)))


# --- to download ---


def norm_table(found: CachedPrompt) -> Table:
    """A row for each block, head and position."""
    writing = found.writing
    arrays = cache_arrays(found)
    layers, heads, positions = arrays["k"].shape
    layer, head, position = (
        grid.flatten() for grid in torch.meshgrid(*map(torch.arange, (layers, heads, positions)), indexing="ij")
    )
    cell = found.cache.layers[0].k
    columns: dict[str, Any] = {
        "layer": layer.numpy(),
        "head": head.numpy(),
        "position": position.numpy(),
        "token": [writing.piece(found.ids[int(at)]) for at in position],
        "k_norm": arrays["k"].flatten().cpu().numpy(),
        "v_norm": arrays["v"].flatten().cpu().numpy(),
        "bytes": [2 * cell.shape[-1] * cell.element_size()] * len(layer),
    }
    return Table(columns, {"model": writing.name, "table": "lengths of keys and values in the KV cache"})


def cost_table(writing: GenerationContext) -> Table:
    found = costs(writing.checkpoint.config, len(writing.prompt.source), dtype_of(writing))
    columns: dict[str, Any] = {
        "length": found["lengths"],
        "multiply_adds_cached": found["cached"],
        "multiply_adds_without": found["again"],
        "bytes": found["bytes"],
    }
    if found["wide"]:
        columns["bytes_with_own_heads"] = found["wide"]
    columns["bytes_of_gpt2"] = found["reference"]
    return Table(columns, {"model": writing.name, "table": "one token with the KV cache and without"})


def time_table(writing: GenerationContext, times: Sequence[TokenTime]) -> Table:
    if not times:
        raise ValueError("Nothing is measured yet: press Measure in the tab Cache first.")
    columns: dict[str, Any] = {
        "length": [one.length for one in times],
        "seconds_cached": [one.cached for one in times],
        "seconds_without": [one.again for one in times],
    }
    return Table(columns, {"model": writing.name, "table": "seconds of one token, measured"})
