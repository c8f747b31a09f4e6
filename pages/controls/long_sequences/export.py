"""Share & export of the page Long context: the patterns of any head, and the tables of its charts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pandas as pd

from pages.controls.long_sequences.parameters import LONG_CONTEXT
from pages.controls.share.export import Export
from pages.controls.share.links import address_now
from views.core.table_files import Table
from views.long_sequences.patterns import TITLES
from views.long_sequences.questions import PatternContext

CONTROLS = (*LONG_CONTEXT.hideable, "measuring")


def pattern_export(context: PatternContext) -> Export:
    """Export of the patterns: any kind of any head as a matrix and as Python, all heads in a file."""
    kinds = {title: {"ask": "pattern", "kind": kind} for kind, title in TITLES.items()}
    return Export(
        "What each keeps", "long_sequences/patterns", context, context.begun, address_now(model=context.model_name),
        CONTROLS, kinds, "a pattern with its axes named", page_name="long_sequences",
    )  # fmt: skip


def cost_tables(model: str, tables: Mapping[str, pd.DataFrame]) -> dict[str, Callable[[], Table]]:
    """The tables of the page as downloads, by name."""
    return {name: partial(as_table, model, name, table) for name, table in tables.items()}


def as_table(model: str, name: str, table: pd.DataFrame) -> Table:
    return Table({str(key): np.asarray(table[key]) for key in table.columns}, {"model": model, "table": name})
