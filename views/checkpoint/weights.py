"""Matrices of a checkpoint: one of them, a head of it or a circuit through it, its measures, data and Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from engine.analysis.weights import (
    Circuit,
    Histogram,
    Matrix,
    Spectrum,
    by_head,
    circuit,
    histogram,
    matrices,
    spectrum,
)
from engine.analysis.weights.circuit import Which
from engine.checkpoints import Checkpoint
from engine.model.transformer import Transformer
from views.core import matrix_files
from views.core.codegen import quote, source_of
from views.core.table_files import Table

MOST = 2**23  # numbers in one file: as a long table in CSV some 200 MB
UNKNOWN = "This checkpoint has no such matrix; choose another one."
CIRCUITS = {"q": "qk", "out": "ov"}  # by the letter of the matrix that they are multiplied from
CIRCUIT_TITLES = {"qk": "QK circuit", "ov": "OV circuit"}


@dataclass(frozen=True)
class MatrixRow:
    """A matrix that can be drawn. `heads` is how many parts it is made of, heads or `experts`; 0 where of none.

    `circuit` is the one that its heads can be multiplied to: "qk" from W_Q, "ov" from W_O, else "".
    """

    matrix: Matrix
    heads: int
    circuit: str
    experts: bool = False

    @property
    def name(self) -> str:
        return self.matrix.name

    @property
    def label(self) -> str:
        """Row of the map: "dec. queries, W_Q"."""
        side = self.matrix.side
        return f"{side[:3]}. {self.matrix.title}" if side else self.matrix.title


@dataclass(frozen=True)
class Weight:
    """A matrix by its name in the model, `head` of it or all, and whether the circuit through that head is meant."""

    name: str
    head: int | None = None
    circuit: bool = False


@dataclass(frozen=True)
class Measures:
    """`heads` is the root mean square of each head, empty where the matrix is not made of heads."""

    shape: tuple[int, ...]
    histogram: Histogram
    spectrum: Spectrum
    heads: tuple[float, ...]


def drawn_matrices(model: Transformer) -> list[Matrix]:
    return [each for each in matrices(model) if each.kind == "matrix"]


def matrix_rows(model: Transformer) -> list[MatrixRow]:
    return [matrix_row(model, each) for each in drawn_matrices(model)]


def matrix_row(model: Transformer, matrix: Matrix) -> MatrixRow:
    if matrix.part == "mlp" and len(matrix.shape) == 3:  # expert out in
        return MatrixRow(matrix, matrix.shape[0], "", experts=True)
    letter = matrix.name.removesuffix(".weight").rpartition(".")[2]
    attends = matrix.part in ("attn", "cross_attn")
    heads = len(by_head(model, matrix.name)) if attends and letter in ("q", "k", "v", "out") else 0
    return MatrixRow(matrix, heads, CIRCUITS.get(letter, "") if attends else "")


def first_row(rows: Sequence[MatrixRow]) -> MatrixRow:
    """The first with heads, else the first."""
    return next((row for row in rows if row.heads), rows[0])


def magnitudes(model: Transformer) -> list[float]:
    """Root mean square of each of `drawn_matrices`."""
    return [root_mean_square(model.get_parameter(each.name)) for each in drawn_matrices(model)]


def root_mean_square(tensor: Tensor) -> float:
    return torch.linalg.vector_norm(tensor.detach(), dtype=torch.float32).item() / tensor.numel() ** 0.5


def find_row(model: Transformer, weight: Weight) -> MatrixRow:
    """Raises ValueError for a matrix or a head that is not there."""
    row = next((matrix_row(model, each) for each in drawn_matrices(model) if each.name == weight.name), None)
    if row is None or (weight.head is not None and not 0 <= weight.head < row.heads):
        raise ValueError(UNKNOWN)
    return row


def measure(model: Transformer, weight: Weight) -> Measures:
    """Raises ValueError as `find_row` does."""
    row = find_row(model, weight)
    heads = tuple(root_mean_square(part) for part in parts_of(model, row)) if row.heads else ()
    if is_circuit(weight, row):
        product = circuit_of(model, weight, row)
        return Measures(tuple(product.matrix.shape), histogram(product.matrix), product.spectrum, heads)
    tensor = values_of(model, weight, row)
    return Measures(tuple(tensor.shape), histogram(tensor), spectrum(as_matrix(tensor, row)), heads)


def parts_of(model: Transformer, row: MatrixRow) -> Tensor:
    """A matrix as its heads, or its experts."""
    return model.get_parameter(row.name) if row.experts else by_head(model, row.name)


def as_matrix(tensor: Tensor, row: MatrixRow) -> Tensor:
    """Two axes; those of all experts below each other."""
    return tensor.flatten(0, 1) if row.experts and tensor.dim() == 3 else tensor.flatten(1)


def heading(weight: Weight, row: MatrixRow) -> str:
    """ "queries, W_Q · layer 1 · head 2"."""
    what = CIRCUIT_TITLES[row.circuit] if is_circuit(weight, row) else row.matrix.title
    layer = "" if row.matrix.layer is None else f"layer {row.matrix.layer + 1}"
    head = "" if weight.head is None else f"expert {weight.head}" if row.experts else f"head {weight.head + 1}"
    return " · ".join(filter(None, (what, row.matrix.side, layer, head)))


def weight_lines(name: str, checkpoint: Checkpoint, weight: Weight) -> str:
    """Python that binds `values`. Raises ValueError as `find_row` does."""
    row = find_row(checkpoint.model, weight)
    source, note = source_of(name)
    lines = ["from engine import load"]
    if is_circuit(weight, row):
        lines.append("from engine.analysis.weights import circuit")
        more = f", {quote(row.matrix.side)}" if row.matrix.side else ""
        more += ", crosses=True" if crosses(weight) else ""
        value = f"circuit(checkpoint.model, {row.matrix.layer}, {weight.head}, {quote(row.circuit)}{more}).matrix"
    elif weight.head is not None and row.experts:
        value = f"checkpoint.model.get_parameter({quote(weight.name)})[{weight.head}]"
    elif weight.head is not None:
        lines.append("from engine.analysis.weights import by_head")
        value = f"by_head(checkpoint.model, {quote(weight.name)})[{weight.head}]"
    else:
        value = f"checkpoint.model.get_parameter({quote(weight.name)})"
    lines += ["", f"checkpoint = load({source}){note}", f"values = {value}.detach()  # {' '.join(dims(weight, row))}"]
    return "\n".join([*lines, "print(values.shape, values.norm().item())"]) + "\n"


def weight_matrix(name: str, checkpoint: Checkpoint, weight: Weight) -> matrix_files.Matrix:
    """Float32. Raises ValueError as `find_row` does."""
    row = find_row(checkpoint.model, weight)
    values = values_of(checkpoint.model, weight, row).detach().cpu().float()
    title = f"{weight.name}{'' if weight.head is None else f' head {weight.head}'}"
    title += f" {row.circuit.upper()} circuit" if is_circuit(weight, row) else ""
    return matrix_files.Matrix(f"{title}.weight", name, values.numpy(), dims(weight, row), {})


def too_large(shape: Sequence[int]) -> str:
    """Why a matrix of this shape has no file, or ""."""
    count = int(np.prod(shape))
    if count <= MOST:
        return ""
    return (
        f"This matrix has {count:,} numbers and a file holds at most {MOST:,}; choose a head of it, or "
        "use the lines of Python, which give it whole."
    )


def histogram_table(about: dict[str, str], found: Histogram) -> Table:
    edges = found.edges.numpy()
    return Table({"from": edges[:-1], "to": edges[1:], "count": found.counts.numpy()}, about)


def spectrum_table(about: dict[str, str], found: Spectrum) -> Table:
    values = found.values.numpy()
    return Table({"i": np.arange(1, len(values) + 1), "singular value": values}, about)


def is_circuit(weight: Weight, row: MatrixRow) -> bool:
    return weight.circuit and weight.head is not None and bool(row.circuit)


def crosses(weight: Weight) -> bool:
    return ".cross_attn." in weight.name


def circuit_of(model: Transformer, weight: Weight, row: MatrixRow) -> Circuit:
    assert row.matrix.layer is not None and weight.head is not None  # as `is_circuit` says
    which: Which = "qk" if row.circuit == "qk" else "ov"
    return circuit(model, row.matrix.layer, weight.head, which, row.matrix.side, crosses(weight))


def values_of(model: Transformer, weight: Weight, row: MatrixRow) -> Tensor:
    if is_circuit(weight, row):
        return circuit_of(model, weight, row).matrix
    if weight.head is not None:
        return parts_of(model, row)[weight.head].detach()
    return model.get_parameter(weight.name).detach()


def dims(weight: Weight, row: MatrixRow) -> tuple[str, ...]:
    """The names of the axes: of a matrix as it lies in the model, what it gives and what it takes."""
    if is_circuit(weight, row):
        return ("query_d_model", "key_d_model") if row.circuit == "qk" else ("key_d_model", "out_d_model")
    if row.experts:
        return ("out", "in") if weight.head is not None else ("expert", "out", "in")
    if weight.head is not None:
        return ("d_head", "d_model")
    if len(row.matrix.shape) != 2:
        return tuple(f"axis_{i}" for i in range(len(row.matrix.shape)))
    tables = ("tokens.weight", "positions.weight", "distances.weight")
    return ("row", "d_model") if weight.name.endswith(tables) else ("out", "in")
