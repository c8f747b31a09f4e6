"""Text, one token at a time: a generator of Steps over a KV cache."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.prompt import Reader, Text, begin, text_of
from engine.sampling import Distribution, Sampling, distribution, draw

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint


@dataclass(frozen=True)
class Step:
    """One new token: its `id`, the `logits` (vocab) it was chosen from, and the ids before it.

    Behind an encoder, `source` is what that read, and `before` what the decoder did: its start token, then the target
    so far. `run(model, before)`, there `run(model, source, target=before)`, shows how the token came about.
    """

    index: int
    id: int
    logits: Tensor
    sampling: Sampling
    before: tuple[int, ...]
    checkpoint: Checkpoint
    source: tuple[int, ...] = ()

    @cached_property
    def distribution(self) -> Distribution:
        return distribution(self.logits, self.sampling)

    @property
    def piece(self) -> str:
        tokenizer = self.checkpoint.tokenizer
        return f"#{self.id}" if tokenizer is None else tokenizer.piece(self.id)

    @property
    def text(self) -> str:
        """Everything so far, prompt included.

        Behind an encoder: the target so far, without special tokens. With a gap: the text, the gap filled by what was
        written so far. Of a picture: its pixels so far.
        """
        return text_of(self.checkpoint, (*self.before, self.id))


@torch.inference_mode()
def generate(
    checkpoint: Checkpoint,
    prompt: Text,
    max_tokens: int | None = None,
    *,
    target: Text | None = None,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    greedy: bool = False,
    seed: int = 0,
    stop_at_end: bool = True,
) -> Iterator[Step]:
    """Up to `max_tokens` Steps (None: 50, or the rest of a picture), ending early at one of the checkpoint's end
    tokens or when the model's context is full.

    `prompt` is the text to continue. For an encoder-decoder it is the source, and `target` may begin what is written.
    For a model that fills gaps it is a text with a gap mark in it. For a model of pictures it is the first pixels,
    row by row, or none. Start tokens are added where they are missing. Raises ValueError for a model that writes no
    text, a prompt it cannot read or a setting out of range.
    """
    sampling = Sampling(0.0 if greedy else temperature, top_k, top_p)
    begun = begin(checkpoint, prompt, target)
    room = begun.room(max_tokens)
    ends = checkpoint.end_ids if stop_at_end else ()
    generator = torch.Generator().manual_seed(seed)
    reader = Reader(begun, room)
    ids = new = begun.ids
    for index in range(room):
        logits = reader.read([new])[0]
        token = choose(logits, sampling, generator)
        yield Step(index, token, logits, sampling, ids, checkpoint, begun.source)
        if token in ends:
            return
        new = (token,)
        ids += new


def choose(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    if sampling.temperature == 0:
        return int(logits.argmax())
    return draw(distribution(logits, sampling).probabilities.cpu(), generator)
