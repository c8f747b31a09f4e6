"""What the patterns of the page Long sequences answer and export: any head, as a matrix, as Python, in a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from engine.attention_variants import shared
from engine.attention_variants.measure import Setup
from pages.controls.share.export_tables import Made, Query
from pages.controls.share.links import address_now
from views.core.matrix_files import Matrix
from views.core.table_files import Table
from views.long_sequences.codegen import pattern_lines
from views.long_sequences.patterns import TITLES, kept_payload

CONTROLS = (
    "model",
    "length",
    "window",
    "block",
    "k",
    "subspaces",
    "codes",
    "lists",
    "probes",
    "rerank",
    "measuring",
)
PAGE = "long_sequences"
UNKNOWN = "This page has no such head or table; reload it."


def pattern_export(
    model: str, setup: Setup, positions: int, heads: tuple[int, int], pieces: Sequence[str]
) -> Made:
    """Export of the patterns of any of the `heads` (layers, heads a layer) on the first tokens, called `pieces`."""
    run = f"{model} {setup} {positions}"

    def find_pattern(query: Query) -> Matrix:
        layer, head = head_of(query, heads)
        kept = shared.kept(model, positions, layer, head, setup)
        name = next((name for name in kept if TITLES[name] == query.get("matrix")), None)
        if name is None:
            raise ValueError(UNKNOWN)
        hook = f"blocks.{layer}.attn {TITLES[name]} head {head}.pattern"
        tokens = {"query": list(pieces), "key": list(pieces)}
        return Matrix(hook, model, kept[name].pattern.float().numpy(), ("query", "key"), tokens)

    def list_heads(_: Query) -> Iterator[dict[str, Any]]:
        layers, each = heads
        for place in range(layers * each):
            yield {"lengths": run, "layer": place // each, "head": place % each}

    return Made(
        "What each keeps",
        "long_sequences/patterns",
        model,
        "",
        run,
        address_now(model=model),
        lambda query: pattern_lines(model, setup, positions, head_of(query, heads)),
        patterns=list(TITLES.values()),
        looked=find_pattern,
        data="a pattern with its axes named",
        controls=CONTROLS,
        page=PAGE,
        ahead=list_heads,
    )


def answer_heads(
    model: str, setup: Setup, positions: int, heads: tuple[int, int], run: str
) -> Callable[[Query], bytes]:
    """Answers the view's question for another head."""

    def answer(query: Query) -> bytes:
        if query.get("lengths") != run:
            raise ValueError("The model or a setting has changed since; choose the head again.")
        return kept_payload(shared.kept(model, positions, *head_of(query, heads), setup))

    return answer


def head_of(query: Query, heads: tuple[int, int]) -> tuple[int, int]:
    """Layer and head that a query names. Raises ValueError for a head that is not there."""
    match query:
        case {"layer": int(layer), "head": int(head)} if 0 <= layer < heads[0] and 0 <= head < heads[1]:
            return layer, head
    raise ValueError(UNKNOWN)


def cost_tables(model: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, Callable[[], Table]]:
    """The tables of the page as downloads, by name."""

    def table_of(name: str) -> Table:
        columns = {str(key): np.asarray(tables[name][key]) for key in tables[name].columns}
        return Table(columns, {"model": model, "table": name})

    return {name: lambda name=name: table_of(name) for name in tables}  # type: ignore[misc]
