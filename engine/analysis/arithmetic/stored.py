"""How a file holds a weight that takes part in a product, where its matrix stays quantised."""

from __future__ import annotations

from torch import Tensor

from engine.analysis.arithmetic.explanation import Line, Products, operand, result, setting
from engine.model.quantised.tensor import QuantisedTensor


def describe_stored(row: Tensor, index: int, name: str) -> tuple[Line, ...]:
    """The line of integer, scale and what is added, for element `index`, called `name`, of a row of a quantised matrix;
    none for a row of any other."""
    if not isinstance(row, QuantisedTensor) or row.dim() != 1:
        return ()
    found = row.scheme.as_stored(row.stored, index)
    added: Line = () if found.added is None else (" + ", operand(found.added))
    told = f"as its file stores it, in {row.scheme.name}, {name}"
    return (
        (told, " = ", setting(found.integer), " × ", operand(found.scale), *added, " = ", result(float(row[index]))),
    )


def describe_largest(row: Tensor, products: Products, name: str) -> tuple[Line, ...]:
    """The line for the weight of the largest product; `name` has {} for its place in the row."""
    index, _, _ = products.largest(1)
    return describe_stored(row, index[0], name.format(index[0])) if index else ()
