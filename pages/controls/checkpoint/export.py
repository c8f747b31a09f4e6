"""Take away, on the page about a checkpoint: its parts, any of its matrices, its tables in the plane, its tensors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from engine.analysis.switches import sizes
from engine.checkpoints import Checkpoint
from pages.controls.share.export_tables import Made, Query, Taken
from views.architecture.codegen import part_table, size_lines
from views.checkpoint.checkpoint import drawn_matrices, matrix_row, table_matrices
from views.checkpoint.codegen import (
    HISTOGRAM,
    MATRIX,
    SPECTRUM,
    Weight,
    weight_figures,
    weight_lines,
    weight_matrix,
)
from views.checkpoint.codegen_tables import NEAREST, POINTS, VECTORS, Looked, table_lines, table_taken
from views.core.codegen import source_of
from views.core.table_files import Table

PAGE = "checkpoint"
CONTROLS = ("model", "numbers", "own files", "actions")
UNKNOWN = "This checkpoint has no such matrix; choose another one."
NO_TABLE = "This checkpoint has no such table; reload the page."
MOST_NEAR = 2000  # rows whose nearest are in a file
WORK = 400_000_000  # multiply-adds that finding them may take


def of_checkpoint(name: str, checkpoint: Checkpoint) -> Made:
    config = checkpoint.config
    return Made(
        "Checkpoint",
        PAGE,
        name,
        "",
        f"{name} as a whole",
        {"model": name},
        lambda _: size_lines(name, config, {}, sizes(config)),
        tables={"parameters": lambda: part_table(name, config), "tensors": lambda: tensor_table(name, checkpoint)},
        controls=CONTROLS,
    )


def of_matrix(name: str, checkpoint: Checkpoint) -> Made:
    """Its file has the figures of as many matrices, heads and circuits as there is room for."""

    def taken(query: Query) -> Taken:
        what = query.get("matrix")
        if what in (SPECTRUM, HISTOGRAM):
            return weight_figures(name, checkpoint, weight_of(query), str(what))
        return weight_matrix(name, checkpoint, weight_of(query))

    return Made(
        "Weights",
        "checkpoint/weights",
        name,
        "",
        f"{name} by matrix",
        {"model": name},
        lambda query: weight_lines(name, checkpoint, weight_of(query)),
        patterns=(MATRIX, SPECTRUM, HISTOGRAM),
        looked=taken,
        data="of the matrix that is looked at, its axes named",
        controls=CONTROLS,
        page=PAGE,
        ahead=lambda _: chain([{"checkpoint": name, "sizes": True}], matrix_queries(name, checkpoint)),
    )


def of_tables(name: str, checkpoint: Checkpoint) -> Made:
    """Its file has every table in the plane, and what is nearest to as many rows as there is room for."""
    return Made(
        "Embedding",
        "checkpoint/projection",
        name,
        "",
        f"{name} in the plane",
        {"model": name},
        lambda query: table_lines(name, checkpoint, table_looked(query)),
        patterns=(POINTS, NEAREST, VECTORS),
        looked=lambda query: table_taken(name, checkpoint, table_looked(query), str(query.get("matrix"))),
        data="of the table that is shown",
        controls=CONTROLS,
        page=PAGE,
        ahead=lambda query: table_queries(name, checkpoint, table_looked(query)),
        most=MOST_NEAR,
    )


def of_tensors(name: str, checkpoint: Checkpoint) -> Made:
    source, note = source_of(name)
    lines = (
        f"from engine import load\n\ncheckpoint = load({source}){note}\nfor row in checkpoint.report.rows:\n"
        "    print(row.name, row.status, row.shape, row.ours, row.dtype)\n"
    )
    return Made(
        "Every tensor",
        "checkpoint/tensors",
        name,
        "",
        f"{name} by tensor",
        {"model": name},
        lambda _: lines,
        tables={"tensors": lambda: tensor_table(name, checkpoint)},
        data="the whole table",
        controls=CONTROLS,
        page=PAGE,
    )


def weight_of(query: Query) -> Weight:
    match query:
        case {"of": str(of), "head": int() | None as head, "circuit": bool(circuit)}:
            return Weight(of, head, circuit)
    raise ValueError(UNKNOWN)


def table_looked(query: Query) -> Looked:
    match query:
        case {"table": str(table), "how": "pca" | "tsne" as how, "near": int(near)}:
            return Looked(table, how, near)
    raise ValueError(NO_TABLE)


def matrix_queries(name: str, checkpoint: Checkpoint) -> Iterator[dict[str, Any]]:
    """What weights.js asks about each matrix, then about each head, then through each circuit."""
    rows = [matrix_row(checkpoint.model, each) for each in drawn_matrices(checkpoint.model)]
    for row in rows:
        yield {"checkpoint": name, "matrix": row["name"], "head": None, "circuit": False}
    for through in (False, True):
        for row in rows:
            for head in range(row["heads"] if row["circuit"] or not through else 0):
                yield {"checkpoint": name, "matrix": row["name"], "head": head, "circuit": through}


def table_queries(name: str, checkpoint: Checkpoint, at: Looked) -> Iterator[dict[str, Any]]:
    """What projection.js asks: each table in the plane, then the nearest of one row after the other."""
    yield {"checkpoint": name, "table": at.table, "near": at.near}
    tables = table_matrices(checkpoint.model)
    for table in tables:
        yield {"checkpoint": name, "table": table.name, "how": "pca"}
    for table in sorted(tables, key=lambda table: table.name != at.table):
        rows, width = table.shape
        for id in range(min(rows, WORK // (rows * width))):
            yield {"checkpoint": name, "table": table.name, "near": id}


def tensor_table(name: str, checkpoint: Checkpoint) -> Table:
    """A row for each tensor of the file, as the account of it says."""
    rows = checkpoint.report.rows
    columns: dict[str, list[Any]] = {
        "name": [row.name for row in rows],
        "status": [row.status for row in rows],
        "shape": [" ".join(map(str, row.shape)) for row in rows],
        "ours": [" ".join(row.ours) for row in rows],
        "dtype": [row.dtype for row in rows],
    }
    return Table(columns, {"model": name, "table": "tensors"})
