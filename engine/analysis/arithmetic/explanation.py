"""What an explanation consists of: operands with their places, products, and lines of text and unrounded numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

Role = Literal["query", "key", "value", "attention", "residual", "mlp", "probability"]
Form = Literal["number", "operand", "setting", "percent"]
Operation = Literal[
    "token id", "embedding row", "sinusoid", "vector", "pixel", "mel energy", "copy", "sum", "mean",
    "linear map", "norm", "scale of a norm", "rotation", "product", "dot product", "softcap", "position bias", "mask",
    "masking", "softmax", "weighted sum", "activation", "temperature", "position", "probability",
    "choice of experts", "token dropout",
]  # fmt: skip
Index = tuple[int | slice, ...]
WHOLE = slice(None)  # of an axis, inside an index
WRITTEN = 3  # products written out in a line


def format_index(at: int | slice) -> str:
    """An index as Python writes it."""
    if isinstance(at, int):
        return str(at)
    return ":".join("" if end is None else str(end) for end in (at.start, at.stop))


@dataclass(frozen=True)
class Number:
    """A number inside a line. `form` "operand" stands in parentheses where it is negative, "setting" is not padded."""

    value: float
    form: Form = "number"
    strong: bool = False
    role: Role | None = None


@dataclass(frozen=True)
class Span:
    """A name inside a line, in the colour of its role."""

    text: str
    role: Role


Line = tuple[str | Span | Number, ...]


@dataclass(frozen=True)
class Operand:
    """A vector that takes part: `source`[`index`].

    `source` is a hook or a parameter. `axis` names what `values` (1-D, float64) run over; `chosen` is the element that
    the result is made of. Only `drawn` ones are shown as bars.
    """

    label: str
    values: Tensor
    source: str
    index: Index = ()
    axis: str = ""
    role: Role | None = None
    chosen: int | None = None
    drawn: bool = True

    @property
    def place(self) -> str:
        """Hook or parameter with its index, as Python writes it."""
        inside = ", ".join(map(format_index, self.index))
        return f"{self.source}[{inside}]" if inside else self.source


@dataclass(frozen=True)
class Products:
    """The terms `scale` x left x right of a sum; `bias` is added to it. `group` is the width of one head, where the
    terms are those of all heads joined."""

    left: Operand
    right: Operand
    bias: float | None = None
    scale: float = 1.0
    group: int | None = None

    @property
    def values(self) -> Tensor:
        return self.scale * self.left.values * self.right.values

    @property
    def total(self) -> float:
        return float(self.values.sum()) + (self.bias or 0.0)

    def largest(self, count: int) -> tuple[list[int], int, float]:
        """Indices of the largest terms, none of them 0; how many others are not 0, and their sum."""
        values = self.values
        order = values.abs().argsort(descending=True, stable=True)[: int(values.count_nonzero())]
        rest = order[count:]
        return order[:count].tolist(), len(rest), float(values[rest].sum())


@dataclass(frozen=True)
class Steps:
    """An explanation while it is put together: everything but what was stored. `operands` are in the order of use."""

    operation: Operation
    value: float
    lines: tuple[Line, ...]
    operands: tuple[Operand, ...] = ()
    products: Products | None = None

    def then(self, operation: Operation, value: float, *lines: Line, operands: tuple[Operand, ...] = ()) -> Steps:
        """The next operation, on the result of this one."""
        return Steps(operation, value, (*self.lines, *lines), (*self.operands, *operands), self.products)


@dataclass(frozen=True)
class Explanation:
    """Explanation of `hook`[`index`].

    `recomputed` is in double precision from the operands that are listed, `stored` is the element of the trace.
    `edited` says that an edit of the run changes the element itself.
    """

    hook: str
    index: Index
    operation: Operation
    operands: tuple[Operand, ...]
    products: Products | None
    lines: tuple[Line, ...]
    recomputed: float
    stored: float
    edited: bool = False


def operand(value: float) -> Number:
    return Number(float(value), "operand")


def setting(value: float) -> Number:
    return Number(float(value), "setting")


def result(value: float, role: Role | None = None, form: Form = "number") -> Number:
    return Number(float(value), form, strong=True, role=role)


def number(value: float) -> Number:
    return Number(float(value))


def sum_line(names: list[Span], values: list[float]) -> Line:
    """a + b = 1 + 2 = 3, for two or more."""
    line: list[str | Span | Number] = [names[0]]
    for name in names[1:]:
        line += [" + ", name]
    line += [" = ", number(values[0])]
    for value in values[1:]:
        line += [" + ", operand(value)]
    return (*line, " = ", result(sum(values)))


def products_line(left: Tensor, right: Tensor) -> Line:
    """(1 × 2) + (3 × 4) + … 5 more (6)."""
    pieces: list[str | Number] = []
    for a, b in zip(left[:WRITTEN].tolist(), right[:WRITTEN].tolist(), strict=True):
        pieces += [" + (" if pieces else "(", number(a), " × ", number(b), ")"]
    others = len(left) - WRITTEN
    if others > 0:
        rest = float(torch.dot(left[WRITTEN:], right[WRITTEN:]))
        pieces += [f" + … {others} more (", number(rest), ")"]
    return tuple(pieces)
