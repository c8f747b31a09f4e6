"""Heads: how queries, keys and values are split and joined again, how much each gives from one token to another, and a
task that one head cannot do and two can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from engine.model.layers.mask import Causal
from engine.model.layers.softmax import softmax
from engine.runtime import library
from engine.tokenizers.encoding import Encoding

LENGTH, BATCH, STEPS, RATE = 8, 64, 1000, 0.1


def split_heads(x: Tensor, heads: int) -> Tensor:
    """Cuts queries, keys or values, batch pos d_model, into batch head pos d_head. Each head has columns of its own in
    W_Q, W_K and W_V, which read the whole stream: the stream itself is never cut."""
    batch, pos, d_model = x.shape
    if d_model % heads:
        raise ValueError(f"expected a d_model that {heads} heads divide, got {d_model}; choose another number.")
    return x.view(batch, pos, heads, d_model // heads).transpose(1, 2)


def merge_heads(z: Tensor) -> Tensor:
    """batch head pos d_head -> batch pos d_model."""
    return z.transpose(1, 2).flatten(2)


def training_examples(ids: list[int]) -> list[tuple[list[int], int]]:
    """Lists what a text of n tokens teaches under a causal mask: n - 1 pairs of a prefix and the token after it."""
    return [(ids[:end], ids[end]) for end in range(1, len(ids))]


@dataclass(frozen=True)
class TokenLink:
    """`weights` that each head gives from one token to an earlier one, layer head; `layer` and `head` of the largest,
    and what that head gives to the earlier token from each of those `between` the two."""

    weights: Tensor
    layer: int
    head: int
    between: Tensor


def link_tokens(name: str, ids: Sequence[int], pos: int, seen: int) -> TokenLink:
    """How much each head gives from the token at `pos` to the earlier one at `seen`, and the head that gives most, with
    what it gives from others."""
    trace = library.traces.trace(name, Encoding.from_ids(ids))
    patterns = trace.stack("attn.pattern")[:, 0]  # layer head pos key
    weights = patterns[:, :, pos, seen]
    layer, head = divmod(int(weights.flatten().argmax()), weights.shape[1])
    return TokenLink(weights, layer, head, patterns[layer, head, seen + 1 : pos, seen])


@dataclass(frozen=True)
class Fit:
    """`losses` by step; `patterns` is head pos key, `values` head: what each head multiplies its average with."""

    losses: list[float]
    patterns: Tensor
    values: Tensor


def fit_difference(heads: int, steps: int = STEPS, seed: int = 0) -> Fit:
    """Trains attention by position alone on y_t = x_{t-1} - x_0, for t > 0.

    The weights of a head are positive and sum to 1, so that one head gives a multiple of an average of the two. A
    difference takes two heads, one with a positive and one with a negative value.
    """
    torch.manual_seed(seed)
    scores = nn.Parameter(0.1 * torch.randn(heads, LENGTH, LENGTH))
    values = nn.Parameter(0.1 * torch.randn(heads))
    allowed = Causal().allows(torch.arange(LENGTH), torch.arange(LENGTH))
    optimiser = torch.optim.Adam([scores, values], lr=RATE)
    losses: list[float] = []

    def patterns() -> Tensor:
        return softmax(scores.masked_fill(~allowed, float("-inf")))

    for _ in range(steps):
        x = torch.randn(BATCH, LENGTH)
        target = x[:, :-1] - x[:, :1]
        given = torch.einsum("h,hpk,bk->bp", values, patterns(), x)
        loss = (given[:, 1:] - target).square().mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return Fit(losses, patterns().detach(), values.detach())
