"""Share & export of the page Long sequences: the patterns of any head, and the tables of its charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from pages.controls.share.export_tables import Made, Query
from pages.controls.share.links import address_now
from views.core.questions import Page
from views.core.table_files import Table
from views.long_sequences.patterns import TITLES
from views.long_sequences.questions import PatternContext

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


def pattern_export(page: Page, context: PatternContext) -> Made:
    """Export of the patterns: any kind of any head as a matrix and as Python, all heads in a file."""
    kinds = {title: kind for kind, title in TITLES.items()}

    def ask_pattern(query: Query) -> dict[str, Any]:
        place = {name: query.get(name) for name in ("layer", "head")}
        kind = kinds.get(str(query.get("matrix", TITLES["full"])), query.get("matrix"))
        return {"ask": "pattern", "trace": context.digest, **place, "kind": kind}

    return Made(
        "What each keeps",
        "long_sequences/patterns",
        context.model_name,
        "",
        context.digest,
        address_now(model=context.model_name),
        lambda query: page.python(ask_pattern(query)),
        patterns=list(kinds),
        looked=lambda query: page.table(ask_pattern(query)),
        data="a pattern with its axes named",
        controls=CONTROLS,
        page="long_sequences",
        ahead=lambda _: page.carried(),
    )


def cost_tables(model: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, Callable[[], Table]]:
    """The tables of the page as downloads, by name."""
    return {name: partial(as_table, model, name, table) for name, table in tables.items()}


def as_table(model: str, name: str, table: pd.DataFrame) -> Table:
    return Table({str(key): np.asarray(table[key]) for key in table.columns}, {"model": model, "table": name})
