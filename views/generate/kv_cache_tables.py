"""What the tab Cache gives away: every vector's length, costs by length, measured seconds, and lines of Python."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from engine.analysis.caching import TokenTime
from views.core.table_files import Table
from views.generate.codegen import joined, opening
from views.generate.kv_cache import Cached, cache_arrays, costs, dtype_of
from views.generate.session import UNKNOWN, Query, Writing


def norm_table(writing: Writing, query: Query) -> Table:
    """A row for each block, head and position of the cache behind the branch that is shown."""
    found = Cached(writing, writing.ids(query.get("branch", [])))
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


def cost_table(writing: Writing, query: Query) -> Table:
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


def time_table(writing: Writing, times: Sequence[TokenTime]) -> Table:
    if not times:
        raise ValueError("Nothing is measured yet: press Measure in the tab Cache first.")
    columns = {
        "length": [one.length for one in times],
        "seconds_cached": [one.cached for one in times],
        "seconds_without": [one.again for one in times],
    }
    return Table(columns, {"model": writing.name, "table": "seconds of one token, measured"})


def cache_lines(writing: Writing, query: Query) -> str:
    """They bind `cache` to the KV cache behind the branch that is shown, `k` and `v` to the lengths of its vectors."""
    ids = writing.ids(query.get("branch", []))
    imports, lines = opening(writing)
    imports |= {
        "engine.generation.prompt": {"Reader", "begin"},
        "engine.analysis.caching": {"cache_bytes", "multiply_adds_again", "multiply_adds_cached"},
        "torch": {"inference_mode"},
    }
    target = f", target={writing.call.target}" if writing.call.target else ""
    lines += [
        f"prompt = begin(checkpoint, {writing.call.prompt}{target})",
        f"ids = (*prompt.ids, *{list(ids)!r})[: checkpoint.config.context]" if ids else "ids = prompt.ids",
        f"reader = Reader(prompt, {len(ids) + 1})",
        "with inference_mode():",
        "    reader.read([ids])",
        "cache = reader.cache",
        "k, v = ([getattr(layer, name)[0, :, : len(ids)].norm(dim=-1) for layer in cache.layers] for name in \"kv\")",
        'print(len(ids), "positions,", cache.bytes, "bytes, |k| of block 1, head 1:", k[0][0])',
        "length, source = len(ids), len(prompt.source)",
        'print("multiply-adds:", multiply_adds_cached(checkpoint.config, length, source), "with the cache,",',
        '      multiply_adds_again(checkpoint.config, length, source), "without")',
        "dtype = next(checkpoint.model.parameters()).dtype",
        'print(cache_bytes(checkpoint.config, checkpoint.config.context, dtype, source), "bytes when it is full")',
    ]
    return joined(imports, lines)


def ahead_of_cache(writing: Writing, query: Query) -> Iterator[dict[str, Any]]:
    """What the tab asks of the branch that is shown."""
    branch = query.get("branch", [])
    if not isinstance(branch, list):
        raise ValueError(UNKNOWN)
    yield {"trace": writing.made, "ask": "cache", "begun": branch}
