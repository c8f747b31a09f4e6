"""Take away, on the page about long sequences: what was measured, the formulas, the searches, and each pattern."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from engine.long.kept import Kept
from engine.long.measure import Setup
from pages.controls.take_made import Made, Taken
from views.lines_of_lengths import length_lines
from views.long_sequences import TITLES
from views.matrix_files import Matrix
from views.table_files import Table

ROWS = ("link", "python", "data")  # its charts are Altair and Plotly, which no view of ours draws


def of_lengths(
    model: str,
    setup: Setup,
    drawn: int,
    head: tuple[int, int],
    kept: Mapping[str, Kept],
    tables: Mapping[str, pd.DataFrame],
) -> Made:
    """`tables` and the patterns that are `kept` of a head on the first `drawn` tokens are what there is to take."""
    found: dict[str, Callable[[], Taken]] = {}
    for name, table in tables.items():
        found[name] = partial(as_table, model, name, table)
    for name, pattern in kept.items():
        found[f"pattern: {TITLES[name]}"] = partial(as_matrix, model, name, pattern, head)
    return Made(
        "Long sequences",
        "taken",
        model,
        "",
        f"{model} {setup} {drawn} {head} {[len(table) for table in tables.values()]}",
        {**st.query_params.to_dict(), "model": model},
        lambda _: length_lines(model, setup, drawn, head),
        rows=ROWS,
        tables=found,
        data="a table of this page, or a pattern with its axes named",
    )


def as_table(model: str, name: str, table: pd.DataFrame) -> Table:
    columns: dict[str, np.ndarray | Sequence[object]] = {str(key): table[key].to_numpy() for key in table.columns}
    return Table(columns, {"model": model, "table": name})


def as_matrix(model: str, name: str, kept: Kept, head: tuple[int, int]) -> Matrix:
    hook = f"blocks.{head[0]}.attn {TITLES[name]} head {head[1]}.pattern"
    return Matrix(hook, model, kept.pattern.float().numpy(), ("query", "key"), {})
