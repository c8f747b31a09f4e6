"""The table of runs as text."""

from __future__ import annotations

from collections.abc import Sequence

from engine.training.runs import Run

TITLES = ("name", "state", "step", "loss", "held-out", "parameters", "task", "MiB", "")
NUMBERS = (2, 3, 4, 5, 7)  # the columns that stand right


def table(found: Sequence[Run]) -> list[str]:
    """A line a run, under a line of titles."""
    rows = [TITLES, *map(cells, found)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        placed = [
            cell.rjust(width) if index in NUMBERS else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(placed).rstrip())
    return lines


def cells(run: Run) -> tuple[str, ...]:
    state = run.state if run.position is None else f"{run.state} ({run.position})"
    loss, held_out = ("" if value is None else f"{value:.3f}" for value in (run.loss, run.held_out_loss))
    parameters = "" if run.parameters is None else f"{run.parameters:,}"
    said = run.fault or run.error
    return (
        run.name, state, f"{run.step:,}/{run.steps:,}", loss, held_out, parameters, run.task,
        f"{run.size / 2**20:,.1f}", said,
    )  # fmt: skip
