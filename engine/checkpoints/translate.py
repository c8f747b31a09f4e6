"""Tensors from one naming to another. The same rows serve loading, saving and checking shapes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torch import Tensor

from engine.checkpoints.family import Row
from engine.model.config import ModelConfig


def translate(tensors: Mapping[str, Tensor], rows: Iterable[Row], config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    """Each row's target names with their tensors; on meta tensors it computes shapes and takes no memory."""
    for row in rows:
        made = row.transform.read([tensors[name] for name in row.source], config)
        yield from zip(row.target, made, strict=True)


def inverse(rows: Iterable[Row]) -> list[Row]:
    return [row.inverse for row in rows]
