"""Take away, on the page about long sequences: what was measured, the formulas, the searches, and each pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from engine.attention_variants import shared
from engine.attention_variants.kept import Kept
from engine.attention_variants.measure import Setup
from pages.controls.share.export_tables import Made, Query, Taken
from pages.controls.share.links import address_now
from views.core.matrix_files import Matrix
from views.core.table_files import Table
from views.long_sequences.codegen import length_lines
from views.long_sequences.long_sequences import TITLES, kept_payload

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
PATTERN = "pattern: "
UNKNOWN = "This page has no such head or table; reload it."


def of_lengths(
    model: str,
    setup: Setup,
    drawn: int,
    heads: tuple[int, int],
    pieces: Sequence[str],
    tables: Mapping[str, pd.DataFrame],
) -> Made:
    """`tables` are there to take, and what is kept of any of the `heads` (layers, heads a layer) on the first `drawn`
    tokens, which are called `pieces`."""
    offers: dict[str, Callable[[], Taken]] = {
        name: partial(as_table, model, name, table) for name, table in tables.items()
    }

    def pattern(query: Query) -> Taken:
        layer, head = head_of(query, heads)
        kept = shared.kept(model, drawn, layer, head, setup)
        name = next((name for name in kept if f"{PATTERN}{TITLES[name]}" == query.get("matrix")), None)
        if name is None:
            raise ValueError(UNKNOWN)
        return as_matrix(model, name, kept[name], (layer, head), pieces)

    def ahead(_: Query) -> Iterator[dict[str, Any]]:
        layers, each = heads
        for place in range(layers * each):
            yield {"lengths": made, "layer": place // each, "head": place % each}

    made = f"{model} {setup} {drawn} {[len(table) for table in tables.values()]}"
    return Made(
        "Long sequences",
        "long_sequences",
        model,
        "",
        made,
        address_now(model=model),
        lambda query: length_lines(model, setup, drawn, head_of(query, heads)),
        tables=offers,
        patterns=[f"{PATTERN}{title}" for title in TITLES.values()],
        looked=pattern,
        data="a table of this page, or a pattern with its axes named",
        controls=CONTROLS,
        ahead=ahead,
    )


def answering(model: str, setup: Setup, drawn: int, heads: tuple[int, int], made: str) -> Callable[[Query], bytes]:
    """What the view asks when somebody turns to another head."""

    def answer(query: Query) -> bytes:
        if query.get("lengths") != made:
            raise ValueError("The model or a setting has changed since; choose the head again.")
        return kept_payload(shared.kept(model, drawn, *head_of(query, heads), setup))

    return answer


def head_of(query: Query, heads: tuple[int, int]) -> tuple[int, int]:
    """Raises ValueError for a head that is not there."""
    match query:
        case {"layer": int(layer), "head": int(head)} if 0 <= layer < heads[0] and 0 <= head < heads[1]:
            return layer, head
    raise ValueError(UNKNOWN)


def as_table(model: str, name: str, table: pd.DataFrame) -> Table:
    columns: dict[str, np.ndarray | Sequence[object]] = {str(key): table[key].to_numpy() for key in table.columns}
    return Table(columns, {"model": model, "table": name})


def as_matrix(model: str, name: str, kept: Kept, head: tuple[int, int], pieces: Sequence[str]) -> Matrix:
    hook = f"blocks.{head[0]}.attn {TITLES[name]} head {head[1]}.pattern"
    tokens = {"query": list(pieces), "key": list(pieces)}
    return Matrix(hook, model, kept.pattern.float().numpy(), ("query", "key"), tokens)
