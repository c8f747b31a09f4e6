"""Dropout (Srivastava et al. 2014): in training, each number is 0 with probability p and divided by 1 - p otherwise."""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    return functional.dropout(x, p) if training and p > 0 else x  # PyTorch's own does not come free at p = 0
