"""A checkpoint's tables of vectors in the plane, what is near one of them, and the lines of Python that give both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.checkpoints import Checkpoint
from views.checkpoint.checkpoint import points, table_neighbours, table_of
from views.checkpoint.codegen import Weight, weight_matrix
from views.core.codegen import quoted, source_of
from views.core.matrix_files import Matrix
from views.core.payload import unpack
from views.core.table_files import Table

POINTS, NEAREST, VECTORS = "points in the plane", "nearest to the chosen one", "all vectors"


@dataclass(frozen=True)
class Looked:
    """A table by its name in the model, how it is laid into the plane ("pca" or "tsne"), and the row that is chosen."""

    table: str
    how: str
    near: int


def table_lines(name: str, checkpoint: Checkpoint, at: Looked) -> str:
    """They bind `found`, the points, and `near`, the nearest rows. Raises ValueError for a table that is not there."""
    table_of(checkpoint, at.table)
    source, note = source_of(name)
    lines = [
        "from engine import load",
        "from engine.analysis.weights import neighbours, projection",
        "",
        f"checkpoint = load({source}){note}",
        f"table = checkpoint.model.get_parameter({quoted(at.table)}).detach()",
        f"found = projection(table, {quoted(at.how)})",
        f"near = neighbours(table, {at.near})",
        f"print(found.points[found.ids.tolist().index({at.near})].tolist())",
        "for id, similarity in zip(near.ids.tolist(), near.similarity.tolist(), strict=True):",
        "    print(id, similarity)",
    ]
    return "\n".join(lines) + "\n"


def table_taken(name: str, checkpoint: Checkpoint, at: Looked, what: str) -> Table | Matrix:
    """Raises ValueError for a table or a row that is not there, and for more numbers than a file should hold."""
    about = {"model": name, "table": at.table}
    if what == VECTORS:
        table_of(checkpoint, at.table)
        return weight_matrix(name, checkpoint, Weight(at.table, None, False))
    if what == NEAREST:
        _, near = unpack(table_neighbours(checkpoint, at.table, at.near))
        ids = near["ids"].data
        return Table({**named(checkpoint, at.table, ids), "similarity": near["similarity"].data}, about)
    _, found = points(checkpoint, at.table, at.how)
    places = found["points"].cpu().float().numpy()
    ids = found["ids"].cpu().numpy()
    return Table({**named(checkpoint, at.table, ids), "x": places[:, 0], "y": places[:, 1]}, about | {"how": at.how})


def named(checkpoint: Checkpoint, table: str, ids: np.ndarray) -> dict[str, Any]:
    """Ids, with the tokens they are of where they are of tokens."""
    tokenizer = checkpoint.tokenizer if table.endswith("tokens.weight") else None
    return {"id": ids} | ({} if tokenizer is None else {"token": [tokenizer.piece(int(id)) for id in ids]})
