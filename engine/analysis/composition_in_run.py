"""How much of a head's queries, keys and values each earlier head wrote in a run.

Elhage et al. 2021 ("A Mathematical Framework for Transformer Circuits", "Path Expansion of Attention Scores"): with the
norms held still, a query is the exact sum of what each part wrote, of `engine.analysis.score_split`. A head's share is
the length of its term by the sum of the lengths of all terms, as Kobayashi et al. 2020 ("Attention is Not Only a
Weight", section 3) measure what an attention takes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from engine.analysis.score_split import vectors
from engine.analysis.weights.circuit import attention_of
from engine.analysis.weights.composition import Composition
from engine.analysis.writers import Walk
from engine.model.transformer import Transformer
from engine.runtime.trace import Trace


def compose_in_run(model: Transformer, trace: Trace, layer: int, head: int, side: str = "") -> Composition:
    """Means over all positions of the first text of `shares_at`."""
    length = trace[f"{side and side + '.'}blocks.0.resid_pre"].shape[1]
    return mean_of([shares_at(model, trace, layer, head, pos, side) for pos in range(length)])


def mean_of(shares: list[Tensor]) -> Composition:
    return Composition(*torch.stack(shares).mean(0))


@torch.no_grad()
def shares_at(model: Transformer, trace: Trace, layer: int, head: int, pos: int, side: str = "") -> Tensor:
    """Shares in [0, 1] of each earlier head of the stack in the query, the key and the value at one position, 3 layer
    head; the rest is the embedding's, the MLPs', the biases'. Raises ValueError for a layer, head or position that
    there is not."""
    attention = attention_of(model, layer, side, crosses=False)
    if not 0 <= head < attention.heads:
        raise ValueError(f"head must be 0 to {attention.heads - 1}, got {head}.")
    walk = Walk(model, trace, pos, side)
    shares = torch.zeros(3, layer, attention.heads, dtype=torch.float64)
    for at, which in enumerate("qkv"):
        hook = f"{walk.prefix}blocks.{layer}.attn"
        writers, terms = vectors(walk, attention, layer, head, False, which, hook)
        lengths = terms.norm(dim=-1)
        whole = lengths.sum()
        for writer, length in zip(writers, lengths, strict=True):
            if writer.kind == "head" and writer.layer is not None and writer.head is not None and whole > 0:
                shares[at, writer.layer, writer.head] = length / whole
    return shares
