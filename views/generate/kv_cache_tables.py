"""What the tab Cache gives away: every vector's length, costs by length, measured seconds, and lines of Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from views.core.table_files import Table
from views.generate.codegen import joined, opening
from views.generate.kv_cache import Cached, cache_arrays, costs, dtype_of
from views.generate.session import UNKNOWN, Query, Writing

MOST_TIMES = 64


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


def time_table(writing: Writing, query: Query) -> Table:
    """Of what the browser was told when it measured."""
    times = query.get("times")
    rows = [row for row in times if is_time(row)] if isinstance(times, list) else []
    if not rows:
        raise ValueError("Nothing is measured yet: press Measure here in the tab Cache first.")
    rows = rows[:MOST_TIMES]
    columns = {name: [row[key] for row in rows] for name, key in SECONDS.items()}
    return Table(columns, {"model": writing.name, "table": "seconds of one token, measured"})


SECONDS = {"length": "length", "seconds_cached": "cached", "seconds_without": "again"}


def is_time(row: object) -> bool:
    if not isinstance(row, dict):
        return False
    numbers = [row.get(key) for key in SECONDS.values()]
    return all(isinstance(one, int | float) and math.isfinite(one) and one >= 0 for one in numbers)


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
    yield {"trace": writing.made, "ask": "cache_costs"}
