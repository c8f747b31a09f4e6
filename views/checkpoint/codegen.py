"""One matrix of a checkpoint, a head of it, or a circuit made of two, and the lines of Python that give it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from engine.analysis.weights import by_head, circuit
from engine.checkpoints import Checkpoint
from views.checkpoint.checkpoint import drawn_matrices, figures, matrix_row
from views.core.codegen import quoted, source_of
from views.core.matrix_files import Matrix
from views.core.table_files import Table

MOST = 2**23  # numbers in one file: as a long table in CSV some 200 MB
MATRIX, SPECTRUM, HISTOGRAM = "its numbers", "its singular values", "its histogram"
UNKNOWN = "This checkpoint has no such matrix; choose another one."


@dataclass(frozen=True)
class Weight:
    """A matrix by its name in the model, `head` of it or all, and whether the circuit through that head is meant."""

    name: str
    head: int | None
    circuit: bool


def weight_lines(name: str, checkpoint: Checkpoint, weight: Weight) -> str:
    """They bind `values`. Raises ValueError for a matrix or a head that is not there."""
    row = row_of(checkpoint, weight)
    source, note = source_of(name)
    lines = ["from engine import load"]
    if through(weight, row):
        lines.append("from engine.analysis.weights import circuit")
        more = f", {quoted(row['side'])}" if row["side"] else ""
        more += ", crosses=True" if crosses(weight) else ""
        made = f"circuit(checkpoint.model, {row['layer']}, {weight.head}, {quoted(row['circuit'])}{more}).matrix"
    elif weight.head is not None:
        lines.append("from engine.analysis.weights import by_head")
        made = f"by_head(checkpoint.model, {quoted(weight.name)})[{weight.head}]"
    else:
        made = f"checkpoint.model.get_parameter({quoted(weight.name)})"
    lines += ["", f"checkpoint = load({source}){note}", f"values = {made}.detach()  # {' '.join(dims(weight, row))}"]
    return "\n".join([*lines, "print(values.shape, values.norm().item())"]) + "\n"


def weight_matrix(name: str, checkpoint: Checkpoint, weight: Weight) -> Matrix:
    """Float32. Raises ValueError as `weight_lines` does, and for more numbers than a file should hold."""
    row = row_of(checkpoint, weight)
    values = values_of(checkpoint, weight, row).detach().cpu().float()
    if values.numel() > MOST:
        raise ValueError(
            f"This matrix has {values.numel():,} numbers and a file holds at most {MOST:,}; choose a head of it, or "
            "take the lines of Python, which give it whole."
        )
    title = f"{weight.name}{'' if weight.head is None else f' head {weight.head}'}"
    title += f" {row['circuit'].upper()} circuit" if through(weight, row) else ""
    return Matrix(f"{title}.weight", name, values.numpy(), dims(weight, row), {})


def weight_figures(name: str, checkpoint: Checkpoint, weight: Weight, what: str) -> Table:
    """What is drawn of a matrix, `what` being SPECTRUM or HISTOGRAM. Raises ValueError as `weight_lines` does."""
    row_of(checkpoint, weight)
    _, arrays = figures(checkpoint.model, weight.name, weight.head, weight.circuit)
    about = {"model": name, "matrix": weight.name} | ({} if weight.head is None else {"head": str(weight.head)})
    if what == HISTOGRAM:
        edges = arrays["edges"].numpy()
        return Table({"from": edges[:-1], "to": edges[1:], "count": arrays["counts"].numpy()}, about)
    values = arrays["values"].numpy()
    return Table({"i": np.arange(1, len(values) + 1), "singular value": values}, about)


def row_of(checkpoint: Checkpoint, weight: Weight) -> dict[str, Any]:
    model = checkpoint.model
    row = next((matrix_row(model, each) for each in drawn_matrices(model) if each.name == weight.name), None)
    if row is None or (weight.head is not None and not 0 <= weight.head < row["heads"]):
        raise ValueError(UNKNOWN)
    return row


def through(weight: Weight, row: dict[str, Any]) -> bool:
    return weight.circuit and weight.head is not None and bool(row["circuit"])


def crosses(weight: Weight) -> bool:
    return ".cross_attn." in weight.name


def values_of(checkpoint: Checkpoint, weight: Weight, row: dict[str, Any]) -> Tensor:
    if through(weight, row):
        return circuit(
            checkpoint.model, row["layer"], int(weight.head or 0), row["circuit"], row["side"], crosses(weight)
        ).matrix
    if weight.head is not None:
        return by_head(checkpoint.model, weight.name)[weight.head]
    return checkpoint.model.get_parameter(weight.name)


def dims(weight: Weight, row: dict[str, Any]) -> tuple[str, ...]:
    """The names of the axes: of a matrix as it lies in the model, what it gives and what it takes."""
    if through(weight, row):
        return ("query_d_model", "key_d_model") if row["circuit"] == "qk" else ("key_d_model", "out_d_model")
    if weight.head is not None:
        return ("d_head", "d_model")
    if len(row["shape"]) != 2:
        return tuple(f"axis_{i}" for i in range(len(row["shape"])))
    return ("row", "d_model") if weight.name.endswith(("tokens.weight", "positions.weight")) else ("out", "in")
