"""What became of every tensor of a checkpoint."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, get_args

Status = Literal["loaded", "tied", "dropped", "missing", "unexpected"]
MEANING = {
    "loaded": "loaded",
    "tied": "tied",
    "dropped": "dropped on purpose",
    "missing": "missing",
    "unexpected": "unexpected",
}


@dataclass(frozen=True)
class TensorRow:
    """One tensor: its `name` in the file, or the name it should have there, and the model's names for it."""

    name: str
    status: Status
    shape: tuple[int, ...]
    ours: tuple[str, ...] = ()

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        ours = f" -> {', '.join(self.ours)}" if self.ours else ""
        return f"{MEANING[self.status]:18}  {self.name}  ({shape}){ours}"


@dataclass(frozen=True)
class Report:
    """`notes` are sentences about what else to know, such as a tokenizer that could not be read."""

    rows: tuple[TensorRow, ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, status: Status) -> tuple[TensorRow, ...]:
        return tuple(row for row in self.rows if row.status == status)

    @property
    def ok(self) -> bool:
        """Everything the model needs came, and nothing else did."""
        return not self.of("missing") and not self.of("unexpected")

    def __str__(self) -> str:
        counts = Counter(row.status for row in self.rows)
        summary = ", ".join(f"{counts[status]} {MEANING[status]}" for status in get_args(Status))
        remarkable = [str(row) for row in self.rows if row.status != "loaded"]
        return "\n".join([f"{len(self.rows)} tensors: {summary}", *remarkable, *self.notes])


class IncompleteWeights(ValueError):
    """A checkpoint that lacks tensors; `report` accounts for those it has."""

    def __init__(self, message: str, report: Report) -> None:
        super().__init__(message)
        self.report = report
