"""A class for the whole input, or, with targets batch pos, one for each position."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from engine.scoring.examples import Examples
from engine.tokenizers import Encoding
from engine.training.examples.padding import pad_rows, real


def classification_examples(read: Tensor, classes: Tensor, padding: Tensor | None = None) -> Examples:
    """`read` are ids (batch pos) or pixels (batch channel height width); `classes` is batch, or batch pos."""
    return Examples({"ids": read} | ({} if padding is None else {"padding": padding}), classes)


def pair_inputs(rows: Sequence[Encoding], pad: int, segments: bool) -> dict[str, Tensor]:
    """Inputs of texts that were encoded two by two, batch pos; `segments`: the model tells the two apart."""
    ids = [torch.tensor(row.ids) for row in rows]
    told = {"segments": pad_rows([torch.tensor(row.segments) for row in rows], 0)} if segments else {}
    return {"ids": pad_rows(ids, pad), "padding": real(ids), **told}
