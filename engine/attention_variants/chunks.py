"""A long text through a model that reads a short one: overlapping chunks, of each the middle."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

AT_ONCE = 16  # chunks of one batch


def encode_in_chunks(encode: Callable[[Tensor], Tensor], ids: Tensor, context: int) -> Tensor:
    """pos -> pos d_model, `encode` taking chunk pos to chunk pos d_model with pos at most `context`.

    Chunks overlap by half, and each state is taken from the chunk in whose middle half it stands, so that it has seen
    a quarter of a context at least on both sides (Bertsch et al. 2023, section 3.1); the ends of the text have less.
    """
    length = len(ids)
    if context < 2 or length == 0:
        raise ValueError(f"chunks need a context of at least 2 and a text, got {context} and {length} tokens.")
    last = max(length - context, 0)
    starts = [*range(0, last, context // 2), last]
    chunks = torch.stack([ids[start : start + context] for start in starts])
    states = torch.cat([encode(batch) for batch in chunks.split(AT_ONCE)])
    cuts = [0, *((later + sooner + context) // 2 for sooner, later in zip(starts, starts[1:], strict=False)), length]
    kept = zip(states, starts, cuts[:-1], cuts[1:], strict=True)
    return torch.cat([chunk[begin - start : end - start] for chunk, start, begin, end in kept])
