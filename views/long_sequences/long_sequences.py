"""What attention over long sequences costs and what it keeps: measurements, formulas, patterns, searches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from engine.attention_variants.compare import Searched
from engine.attention_variants.cost import Cost
from engine.attention_variants.kept import Kept
from engine.attention_variants.measure import KINDS, MOST_BYTES, Point, grown
from views.core.payload import Named, pack

TITLES = {"full": "full", **{kind: KINDS[kind] for kind in ("window", "blocks", "nearest", "quantized")}}
BRIGHTEST = 0.3  # weights from here on have the full hue: at 1 only the first token would be seen


def long_sequences(
    measured: pd.DataFrame,
    formula: pd.DataFrame,
    searches: pd.DataFrame,
    *,
    heads: tuple[int, int],
    shown: tuple[int, int],
    kept: Mapping[str, Kept],
    pieces: Sequence[str],
    grid: tuple[int, int],
    notes: Mapping[str, Any],
) -> bytes:
    """The payload of long_sequences.js. `heads` says how many layers and heads there are to look at,
    `shown` which one `kept` is of, `pieces` what it reads, `grid` the image that 2-D blocks take the text for."""
    about, arrays = patterns(kept)
    header = {
        "kinds": list(KINDS.items()),
        "measured": records(measured),
        "formulas": records(formula),
        "searches": records(searches),
        "reached": int(measured["length"].max()),
        "most": MOST_BYTES,
        "heads": list(heads),
        "look": {"layer": shown[0], "head": shown[1]},
        "kept": about,
        "pieces": list(pieces),
        "grid": list(grid),
        "brightest": BRIGHTEST,
        **notes,
    }
    return packed(header, arrays)


def kept_payload(kept: Mapping[str, Kept]) -> bytes:
    """What the view asks for when somebody turns to another head."""
    about, arrays = patterns(kept)
    return packed({"kept": about}, arrays)


def patterns(kept: Mapping[str, Kept]) -> tuple[list[dict[str, Any]], dict[str, Named]]:
    """Each pattern (f32 query key), NaN where a query may not look, and how much of the whole one it keeps."""
    about = [
        {"name": name, "title": TITLES[name], "mass": part.mass, "cells": part.cells} for name, part in kept.items()
    ]
    arrays = {
        f"pattern.{name}": Named(
            np.where(part.allowed.numpy(), part.pattern.float().numpy(), np.float32(np.nan)), ("query", "key")
        )
        for name, part in kept.items()
    }
    return about, arrays


def packed(header: Mapping[str, Any], arrays: Mapping[str, Named]) -> bytes:
    return pack(
        header,
        {name: array.data for name, array in arrays.items()},
        {name: array.dims for name, array in arrays.items()},
    )


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """A table by rows as JSON has them: what is not there is null."""
    return [
        {str(name): None if pd.isna(value) else plain(value) for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def measured_rows(points: Sequence[Point]) -> pd.DataFrame:
    """One row a measured point."""
    rows = [
        (KINDS[p.kind], p.length, p.seconds, p.bytes, p.cost.multiply_adds, p.cost.lookups, p.recall) for p in points
    ]
    columns = ["kind", "length", "seconds", "bytes", "multiply-adds", "look-ups", "recall"]
    return pd.DataFrame(rows, columns=columns)


def formula_rows(
    points: Sequence[Point], lengths: Sequence[int], formulas: Mapping[str, Sequence[Cost]]
) -> pd.DataFrame:
    """The formulas at every length. Bytes are bytes; for the time, multiply-adds and look-ups become seconds at the
    rate of the longest measured point of their kind, and there is none for a kind without points."""
    last = {point.kind: point for point in points}
    rows = [
        (KINDS[kind], length, last[kind].seconds * grown(last[kind].cost, cost) if kind in last else None, cost.bytes)
        for kind, costs in formulas.items()
        for length, cost in zip(lengths, costs, strict=True)
    ]
    return pd.DataFrame(rows, columns=["kind", "length", "seconds", "bytes"])


def search_table(rows: Sequence[Searched]) -> pd.DataFrame:
    """One row a way to search."""
    return pd.DataFrame(
        {
            "search": row.name,
            **{f"recall@{k}": value for k, value in row.recall.items()},
            "multiply-adds a query": row.cost.multiply_adds,
            "look-ups a query": row.cost.lookups,
            "µs a query": row.seconds * 1e6,
            "kept, MB": row.bytes / 1e6,
        }
        for row in rows
    )
