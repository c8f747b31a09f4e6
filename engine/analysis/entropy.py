"""How widely each layer's heads spread their attention, position by position."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.analysis.heads import bits
from engine.analysis.recorded_patterns import patterns
from engine.runtime.trace import Trace


def attention_entropy(trace: Trace, side: str = "", crosses: bool = False) -> Tensor:
    """Mean over the heads of -sum p log2 p of each row of the pattern, layer pos, in bits, of the first text.

    0 for one key, log2 n for n keys alike (Clark et al. 2019, "What Does BERT Look At?", section 3.3).
    """
    return torch.stack([mean_entropy(pattern) for pattern in patterns(trace, side, crosses)])


def mean_entropy(pattern: Tensor) -> Tensor:
    """Mean entropy over the heads, in bits (pos), of one layer's pattern (head pos key)."""
    return bits(pattern).mean(0)
