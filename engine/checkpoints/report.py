"""Report of a checkpoint: the fate of every tensor, and what was assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torch import Tensor

from engine.plurals import count_words

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
    """Fate of a tensor: its `name` in the file, or the name it should have there, and the model's names for it.

    `dtype` is how it is stored, in torch's words; empty where it is missing.
    """

    name: str
    status: Status
    shape: tuple[int, ...]
    ours: tuple[str, ...] = ()
    dtype: str = ""

    def __str__(self) -> str:
        shape = " x ".join(map(str, self.shape))
        ours = f" -> {', '.join(self.ours)}" if self.ours else ""
        return f"{MEANING[self.status]:18}  {self.name}  ({shape}){ours}"


@dataclass(frozen=True)
class Assumption:
    """A `key` of config.json that was not given. `why` is one sentence; `certain` are those that the weights show."""

    key: str
    value: Any
    why: str
    certain: bool


@dataclass(frozen=True)
class Report:
    """`notes` are sentences about what else to know, such as a tokenizer that could not be read.

    `assumed` is what stands in for a config.json that is not there; `load(..., config={key: value})` corrects it.
    `stored` are tensors of the file, by the family's names, that are not made again exactly of what the model holds.
    """

    rows: tuple[TensorRow, ...] = ()
    notes: tuple[str, ...] = ()
    assumed: tuple[Assumption, ...] = ()
    stored: Mapping[str, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def rows_with(self, status: Status) -> tuple[TensorRow, ...]:
        return tuple(row for row in self.rows if row.status == status)

    @property
    def ok(self) -> bool:
        """Everything the model needs came, and nothing else did."""
        return not self.rows_with("missing") and not self.rows_with("unexpected")

    def __str__(self) -> str:
        counts = Counter(row.status for row in self.rows)
        summary = ", ".join(f"{counts[status]} {MEANING[status]}" for status in get_args(Status))
        remarkable = [str(row) for row in self.rows if row.status != "loaded"]
        return "\n".join([f"{count_words(len(self.rows), 'tensor')}: {summary}", *remarkable, *self.notes])


class UnknownNames(ValueError):
    """Weights whose names are no family's: `names` are theirs, `expected` those of the nearest `family`.

    The number of a layer stands as {} in both.
    """

    def __init__(self, message: str, names: tuple[str, ...], family: str, expected: tuple[str, ...]) -> None:
        super().__init__(message)
        self.names, self.family, self.expected = names, family, expected


class IncompleteWeights(ValueError):
    """A checkpoint that lacks tensors of its `family`; `report` accounts for those it has."""

    def __init__(self, message: str, report: Report, family: str) -> None:
        super().__init__(message)
        self.report, self.family = report, family
