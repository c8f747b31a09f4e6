"""A class for the whole input, or, with targets batch pos, one for each position."""

from __future__ import annotations

from torch import Tensor

from engine.training.objectives.examples import Examples


def classification_examples(read: Tensor, classes: Tensor, padding: Tensor | None = None) -> Examples:
    """`read` are ids (batch pos) or pixels (batch channel height width); `classes` is batch, or batch pos."""
    return Examples({"ids": read} | ({} if padding is None else {"padding": padding}), classes)
