"""One matrix of a run as a file for other programs: CSV, Parquet or npz, its axes named and its tokens beside them.

CSV and Parquet are long: a row for every element, with the index on each axis, the token there where the axis has
tokens, and the value. npz holds `values`, `dims`, and the tokens of each axis that has them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.runtime.trace import Trace
from views.core.codegen import hook_index
from views.core.lanes import Lane
from views.core.table_files import Format, csv_of, npz_of, parquet_of

TOKENS = ("pos", "query", "key")  # axes whose places are tokens


@dataclass(frozen=True)
class Matrix:
    """`values` with an axis for each of `dims`; `tokens` are by axis. `name` is the hook, `model` the checkpoint."""

    name: str
    model: str
    values: np.ndarray
    dims: tuple[str, ...]
    tokens: Mapping[str, Sequence[str]]

    @property
    def kind(self) -> str:
        """Name of the values: the last part of the hook's name."""
        return self.name.rpartition(".")[2]


def matrix_of(trace: Trace, lanes: Sequence[Lane], model: str, hook: str, head: int | None) -> Matrix:
    """Float32 values as the run computed them; `head` None is all heads. Raises ValueError for what the run has not."""
    _, axes = hook_index(trace, hook, head)
    value = trace[hook].detach().cpu()
    for axis, at in (("head", head), ("batch", 0)):
        if axis in trace.dims(hook) and at is not None:
            value = value.select(trace.dims(hook).index(axis), at)
    if value.is_floating_point():
        value = value.float()
    lane = next((lane for lane in lanes if lane.side and hook.startswith(f"{lane.side}.")), lanes[-1])
    source = lanes[0] if ".cross_attn." in hook else lane
    dims = tuple("query" if axis == "pos" and "key" in axes else axis for axis in axes)
    own = source if hook.rpartition(".")[2] in ("k", "v") else lane  # cross-attention's keys stand for the source
    tokens = {"pos": own.pieces, "query": lane.pieces, "key": source.pieces}
    sizes = dict(zip(dims, value.shape, strict=True))
    kept = {axis: tokens[axis] for axis in TOKENS if axis in sizes and len(tokens[axis]) == sizes[axis]}
    return Matrix(hook, model, value.numpy(), dims, kept)


def as_file(matrix: Matrix, format: Format) -> bytes:
    return {"csv": as_csv, "parquet": as_parquet, "npz": as_npz}[format](matrix)


def columns(matrix: Matrix) -> dict[str, np.ndarray]:
    """The long table: `query`, `query_token`, `key`, `key_token`, ..., and the values under the hook's last name."""
    places = np.indices(matrix.values.shape).reshape(matrix.values.ndim, -1)
    found: dict[str, np.ndarray] = {}
    for axis, at in zip(matrix.dims, places, strict=True):
        found[axis] = at.astype(np.int32)
        if axis in matrix.tokens:
            found[f"{axis}_token"] = np.asarray(matrix.tokens[axis], dtype=object)[at]
    return found | {matrix.kind if matrix.kind not in found else "value": matrix.values.reshape(-1)}


def as_csv(matrix: Matrix) -> bytes:
    return csv_of(columns(matrix))


def as_parquet(matrix: Matrix) -> bytes:
    about = {"model": matrix.model, "hook": matrix.name, "dims": " ".join(matrix.dims)}
    return parquet_of(columns(matrix), about)


def as_npz(matrix: Matrix) -> bytes:
    """Text stands as unicode arrays, so that `numpy.load` needs no pickle."""
    arrays: dict[str, Any] = {"values": matrix.values, "hook": matrix.name, "model": matrix.model, "dims": matrix.dims}
    for axis, pieces in matrix.tokens.items():
        arrays[f"{axis}_tokens"] = np.asarray(list(pieces), dtype=np.str_)
    return npz_of(arrays)
