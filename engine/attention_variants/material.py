"""What the measurements are made on: a long text's real states, and the heads that read them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor

from engine.attention_variants.chunks import encode_in_chunks
from engine.attention_variants.heads import Heads
from engine.checkpoints import Checkpoint
from engine.data.stories import stories
from engine.runtime.run import run

SEED = 2023  # a stream of stories of its own, none of which the model has learned from


@dataclass(frozen=True)
class Material:
    """`states` (pos d_model): what `heads` read their queries, keys and values from."""

    states: Tensor
    heads: Heads

    def first(self, length: int) -> Material:
        return Material(self.states[:length], self.heads)


def suits(checkpoint: Checkpoint) -> bool:
    """Whether its heads search raw states: a decoder whose queries and keys nothing changes behind W_Q and W_K."""
    config = checkpoint.config
    plain = config.attention.qk_norm is None and config.attention.window is None and config.infill is None
    placed = config.norm.place == "before" and config.positions.kind in ("learned", "sinusoidal", "none")
    return checkpoint.tokenizer is not None and config.encoder is None and config.generates and plain and placed


def long_text(checkpoint: Checkpoint, length: int) -> Tensor:
    """The first `length` tokens of stories one after the other, each closed by the end token: pos."""
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        raise ValueError("a long text is made of words, and this model has no tokenizer; choose another.")
    end = [] if tokenizer.end_id is None else [tokenizer.end_id]
    told = (token for text in stories(SEED) for token in [*tokenizer.encode(text, special=False).ids, *end])
    return torch.tensor(list(islice(told, length)))


@torch.no_grad()
def material(checkpoint: Checkpoint, length: int, layer: int = -1) -> Material:
    """`length` states of `layer` of a decoder with its norm before attention, as its W_Q, W_K and W_V see them."""
    model = checkpoint.model
    layer = range(model.config.layers)[layer]
    read = f"blocks.{layer}.norm1.out"

    def encode(ids: Tensor) -> Tensor:
        return run(model, ids, keep=[read], logits_at=slice(-1, None))[read]

    states = encode_in_chunks(encode, long_text(checkpoint, length), model.config.context)
    return Material(states, Heads.of(model.get_submodule(f"blocks.{layer}.attn"), model.config.attention.heads))
