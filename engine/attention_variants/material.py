"""Material of the measurements: a long text's real states, and the heads that read them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, islice

import torch
from torch import Tensor

from engine.attention_variants.heads import Heads
from engine.checkpoints import Checkpoint
from engine.data.stories import stories
from engine.runtime.run import run

SEED = 2023  # a stream of stories of its own, none of which the model has learned from
AT_ONCE = 16  # chunks of one batch


@dataclass(frozen=True)
class Material:
    """`states` (pos d_model): what `heads` read their queries, keys and values from."""

    states: Tensor
    heads: Heads

    def first(self, length: int) -> Material:
        return Material(self.states[:length], self.heads)


def suits(checkpoint: Checkpoint) -> bool:
    """Tells whether a model's heads can search raw states."""
    return not why_unsuited(checkpoint)


def why_unsuited(checkpoint: Checkpoint) -> str:
    """Why a model's heads cannot search raw states, to follow its name, or "".

    What can: a decoder with its norm before attention, whose queries and keys nothing changes after W_Q and W_K.
    """
    config = checkpoint.config
    if checkpoint.tokenizer is None or config.encoder is not None or not config.generates:
        return "is no decoder of text, which this page needs"
    if config.positions.kind not in ("learned", "sinusoidal", "none"):
        kind = "ALiBi" if config.positions.kind == "alibi" else config.positions.kind
        return f"uses {kind} positions, which this page cannot read"
    if config.attention.qk_norm is not None:
        return "norms its queries and keys, which this page cannot read"
    if config.attention.window is not None or config.infill is not None:
        return "has a mask that is not causal over the whole text, which this page cannot read"
    if config.norm.place != "before":
        return "has its norms after attention, which this page cannot read"
    if config.norm.kind == "none":
        return "has no norm before attention, which this page cannot read"
    return ""


def long_text(checkpoint: Checkpoint, length: int, begun: str = "") -> Tensor:
    """Token ids (pos) of the first `length` tokens of a text `begun` by somebody and of stories in a row, each closed
    by the end token."""
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        raise ValueError("a long text is made of words, and this model has no tokenizer; choose another.")
    end = [] if tokenizer.end_id is None else [tokenizer.end_id]
    texts = chain([begun] if begun else [], stories(SEED))
    tokens = (token for text in texts for token in [*tokenizer.encode(text, special=False).ids, *end])
    return torch.tensor(list(islice(tokens, length)))


@torch.no_grad()
def material(checkpoint: Checkpoint, length: int, layer: int = -1, begun: str = "") -> Material:
    """`length` states of `layer` of a decoder with its norm before attention, as its W_Q, W_K and W_V see them."""
    model = checkpoint.model
    layer = range(model.config.layers)[layer]
    read = f"blocks.{layer}.norm1.out"

    def encode(ids: Tensor) -> Tensor:
        return run(model, ids, keep=[read], logits_at=slice(-1, None))[read]

    states = encode_in_chunks(encode, long_text(checkpoint, length, begun), model.config.context)
    return Material(states, Heads.from_layer(model.get_submodule(f"blocks.{layer}.attn"), model.config.attention.heads))


def encode_in_chunks(encode: Callable[[Tensor], Tensor], ids: Tensor, context: int) -> Tensor:
    """pos -> pos d_model, `encode` taking chunk pos to chunk pos d_model with pos at most `context`.

    Chunks overlap by half, and each state is taken from the chunk in whose middle half it stands, so that it has seen
    a quarter of a context at least on both sides (Bertsch et al. 2023, section 3.1); the ends of the text have less.
    """
    length = len(ids)
    if context < 2 or length == 0:
        raise ValueError(f"chunks need a context of at least 2 and a text, got {context} and {length}.")
    last = max(length - context, 0)
    starts = [*range(0, last, context // 2), last]
    chunks = torch.stack([ids[start : start + context] for start in starts])
    states = torch.cat([encode(batch) for batch in chunks.split(AT_ONCE)])
    cuts = [0, *((later + sooner + context) // 2 for sooner, later in zip(starts, starts[1:], strict=False)), length]
    kept = zip(states, starts, cuts[:-1], cuts[1:], strict=True)
    return torch.cat([chunk[begin - start : end - start] for chunk, start, begin, end in kept])
