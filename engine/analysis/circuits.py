"""From token to token through one head: what a token looks for (QK) and what it writes where it is looked at (OV).

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits": W_E^T W_QK W_E and W_U W_OV W_E, here for
chosen tokens, each standing for its vector alone (engine/analysis/token_circuits.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from engine.analysis.token_circuits import W_U, lacks, onward, reads
from engine.analysis.weights.circuit import Which, attention_of, circuit
from engine.model.layers.attention import Attention
from engine.model.layers.norm import norm_of_head
from engine.model.transformer import Transformer

CELLS = 2**24  # of a whole table: 64 MiB
SLICE = 2048  # tokens of the vocabulary at a time
TOGETHER = 1024  # rows of a table at a time
Ids = Sequence[int] | Tensor  # one axis


@dataclass(frozen=True)
class TopTokens:
    """Top-k tokens and their values per row (row k), in descending order."""

    tokens: Tensor
    values: Tensor


@torch.no_grad()
def top_outputs(
    model: Transformer, layer: int, head: int, sources: Ids, k: int = 10, side: str = "", crosses: bool = False
) -> TopTokens:
    """The `k` tokens whose logits rise most where each of `sources` is attended to; the whole table is never held.

    Left out are the biases of v and out (added wherever the head looks) and the logits' own, a soft cap, and of the
    norms behind the head (its own, where norms stand around, and the last) the division by their scale, which depends
    on the whole stream: values compare with one another and are no differences of logits. Raises ValueError for a model
    without such a circuit (see `lacks`), and ids outside the vocabulary.
    """
    written = writes(model, layer, head, sources, side, crosses)
    return best(written, model.config.outputs, k, lambda part, ids: unembed(model, part, ids))


@torch.no_grad()
def qk(
    model: Transformer,
    layer: int,
    head: int,
    queries: Ids,
    keys: Ids | None = None,
    side: str = "",
    crosses: bool = False,
) -> Tensor:
    """q k^T / sqrt(d_head) between tokens, query key (`keys` None: all), as at the same position.

    With biases and norms of q and k. A rotation is that between a position and itself, which is none; biases that
    positions add to scores, and a soft cap, are left out. Raises ValueError as `top_outputs` does, and for a table of
    more than 2^24 cells.
    """
    q = query_or_key_vectors(model, layer, head, queries, side, crosses, query=True)
    ids = range(model.config.vocab_size) if keys is None else keys
    affordable(len(q), len(ids))
    scale = attention_of(model, layer, side, crosses).scale
    return q @ query_or_key_vectors(model, layer, head, ids, side, crosses, query=False).mT * scale


def writes(model: Transformer, layer: int, head: int, sources: Ids, side: str, crosses: bool) -> Tensor:
    """source d_embed: what the head adds to the stream for each source, as W_U reads it."""
    factors = circuit(model, layer, head, "ov", side, crosses)
    require(model, "ov", side)
    read = reads(model, layer, check_ids(sources, model.config.vocab_size, model.device), side, crosses, query=False)
    return onward(model, side, read @ factors.left.float() @ factors.right.float())


def query_or_key_vectors(
    model: Transformer, layer: int, head: int, ids: Ids, side: str, crosses: bool, query: bool
) -> Tensor:
    """q or k of one head for each token, token d_head."""
    attention = attention_of(model, layer, side, crosses)
    if not 0 <= head < attention.heads:
        raise ValueError(f"head must be 0 to {attention.heads - 1}, got {head}.")
    require(model, "qk", side)
    given = check_ids(ids, model.config.vocab_size, model.device)
    read = reads(model, layer, given, side, crosses, query).to(model.dtype)
    made, at = (attention.q, head) if query else (attention.k, head * attention.kv_heads // attention.heads)
    norm = None if not attention.normed else attention.q_norm if query else attention.k_norm
    return project_head(attention, made, norm, at, read).float()


def project_head(
    attention: Attention, projection: nn.Linear, norm: nn.Module | None, head: int, read: Tensor
) -> Tensor:
    """Share of one head in a linear map and its norm, which may be that of all heads together."""
    if norm is not None and attention.whole:
        together: Tensor = norm(projection(read))
        return together.unflatten(-1, (-1, attention.d_head))[:, head]
    bias = None if projection.bias is None else projection.bias.unflatten(0, (-1, attention.d_head))[head]
    one = linear(read, projection.weight.unflatten(0, (-1, attention.d_head))[head], bias)
    return one if norm is None else norm_of_head(norm, head)(one)


def unembed(model: Transformer, written: Tensor, ids: Tensor) -> Tensor:
    return written @ W_U(model)[ids].float().mT


def require(model: Transformer, which: Which, side: str) -> None:
    missing = lacks(model, which, side)
    if missing:
        raise ValueError(missing)


def check_ids(ids: Ids, count: int, device: torch.device) -> Tensor:
    given = torch.as_tensor(ids, device=device).flatten().long()
    wrong = given[(given < 0) | (given >= count)]
    if len(wrong) or not len(given):
        raise ValueError(f"token ids must be some of 0 to {count - 1}, got {wrong[:5].tolist() or 'none'}.")
    return given


def affordable(rows: int, columns: int) -> None:
    if rows * columns > CELLS:
        raise ValueError(
            f"a table may have at most {CELLS} cells, got {rows} x {columns}; choose fewer tokens, or ask for the best "
            "of each row."
        )


def best(left: Tensor, vocabulary: int, k: int, values: Callable[[Tensor, Tensor], Tensor]) -> TopTokens:
    """The `k` best of all tokens for each row, a slice of the vocabulary at a time."""
    if not 1 <= k <= vocabulary:
        raise ValueError(f"k must be 1 to {vocabulary}, the tokens there are, got {k}.")
    found = []
    for part in left.split(TOGETHER):
        top, tokens = part.new_empty(len(part), 0), torch.empty(len(part), 0, dtype=torch.long, device=part.device)
        for ids in torch.arange(vocabulary, device=part.device).split(SLICE):
            top = torch.cat([top, values(part, ids)], dim=1)
            tokens = torch.cat([tokens, ids.expand(len(part), -1)], dim=1)
            top, at = top.topk(min(k, top.shape[1]), dim=1)
            tokens = tokens.gather(1, at)
        found.append((tokens, top))
    return TopTokens(*(torch.cat(each) for each in zip(*found, strict=True)))
