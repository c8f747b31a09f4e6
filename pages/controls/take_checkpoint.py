"""Take away, on the page about a checkpoint: its parts and its tensors as tables, and any of its matrices."""

from __future__ import annotations

from typing import Any

from engine.analysis.switches import sizes
from engine.checkpoints import Checkpoint
from pages.controls.take_made import Made, Query
from views.lines_of_sizes import part_table, size_lines
from views.lines_of_weights import Weight, weight_lines, weight_matrix
from views.table_files import Table

UNKNOWN = "This checkpoint has no such matrix; choose another one."


def of_checkpoint(name: str, checkpoint: Checkpoint) -> Made:
    config = checkpoint.config
    return Made(
        "Checkpoint",
        "checkpoint",
        name,
        "",
        f"{name} as a whole",
        {"model": name},
        lambda _: size_lines(name, config, {}, sizes(config)),
        tables={"tensors": lambda: tensor_table(name, checkpoint), "parameters": lambda: part_table(name, config)},
    )


def of_matrix(name: str, checkpoint: Checkpoint) -> Made:
    """A file that works alone would need all matrices."""
    return Made(
        "Weights",
        "weights",
        name,
        "",
        f"{name} by matrix",
        {"model": name},
        lambda query: weight_lines(name, checkpoint, weight_of(query)),
        rows=("link", "picture", "python", "data"),
        looked=lambda query: weight_matrix(name, checkpoint, weight_of(query)),
        data="the matrix that is looked at, its axes named",
    )


def weight_of(query: Query) -> Weight:
    match query:
        case {"of": str(of), "head": int() | None as head, "circuit": bool(circuit)}:
            return Weight(of, head, circuit)
    raise ValueError(UNKNOWN)


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
