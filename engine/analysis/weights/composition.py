"""How much a head can read of what an earlier head writes, by the weights alone.

Elhage et al. 2021 ("A Mathematical Framework for Transformer Circuits", "Virtual Weights and the Residual Stream"): the
Frobenius norm of the product of two circuits, divided by the product of their norms. Weights of norms are left out, but
for those of a norm behind the attention, which is a part of what the head writes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.analysis.weights.circuit import Circuit, attention_of, circuit
from engine.model.transformer import Transformer


@dataclass(frozen=True)
class Composition:
    """Scores in [0, 1] of each earlier head with the query, the key and the value of one, layer head each."""

    q: Tensor
    k: Tensor
    v: Tensor


@torch.no_grad()
def compose(model: Transformer, layer: int, head: int, side: str = "") -> Composition:
    """Q: |W_OV W_Q W_K^T|, K: |W_OV W_K W_Q^T|, V: |W_OV W_OV'|, each divided by the norms of its two circuits; W_OV is
    the earlier head's. Raises ValueError as `circuit` does."""
    qk, ov = (circuit(model, layer, head, which, side) for which in ("qk", "ov"))
    heads = attention_of(model, layer, side, crosses=False).heads
    q, k, v = torch.zeros(3, layer, heads, dtype=torch.float64)
    for before in range(layer):
        for one in range(heads):
            written = circuit(model, before, one, "ov", side)
            q[before, one] = relative_norm(written, Circuit(qk.left, qk.right))
            k[before, one] = relative_norm(written, Circuit(qk.right.mT, qk.left.mT))
            v[before, one] = relative_norm(written, ov)
    return Composition(q, k, v)


def relative_norm(first: Circuit, second: Circuit) -> float:
    """|A B| / (|A| |B|) of two circuits, by their factors of d_head."""
    inner = first.right.double() @ second.left.double()
    product = Circuit(first.left.double() @ inner, second.right.double())
    whole = norm(first) * norm(second)
    return norm(product) / whole if whole else 0.0


def norm(one: Circuit) -> float:
    """Frobenius norm: of L R that of the Gram matrices' product."""
    left, right = one.left.double(), one.right.double()
    return float(((left.mT @ left) * (right @ right.mT)).sum().clamp(min=0).sqrt())
