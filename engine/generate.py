"""Text, one token at a time: a generator of Steps over a KV cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.batch import batch
from engine.layers.cache import KVCache
from engine.sampling import Distribution, Sampling, distribution, draw
from engine.tokenizers.encoding import Encoding

if TYPE_CHECKING:
    from engine.checkpoints import Checkpoint


@dataclass(frozen=True)
class Step:
    """One new token: its `id`, the `logits` (vocab) it was chosen from, and the ids before it."""

    index: int
    id: int
    logits: Tensor
    sampling: Sampling
    before: tuple[int, ...]
    checkpoint: Checkpoint

    @cached_property
    def distribution(self) -> Distribution:
        return distribution(self.logits, self.sampling)

    @property
    def piece(self) -> str:
        tokenizer = self.checkpoint.tokenizer
        return f"#{self.id}" if tokenizer is None else tokenizer.piece(self.id)

    @property
    def text(self) -> str:
        """Everything so far, prompt included."""
        ids = (*self.before, self.id)
        tokenizer = self.checkpoint.tokenizer
        return " ".join(map(str, ids)) if tokenizer is None else tokenizer.decode(ids)


@torch.inference_mode()
def generate(
    checkpoint: Checkpoint,
    prompt: str | Encoding | Sequence[int] | Tensor,
    max_tokens: int = 50,
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    greedy: bool = False,
    seed: int = 0,
    stop_at_end: bool = True,
) -> Iterator[Step]:
    """Up to `max_tokens` Steps, ending early at one of the checkpoint's end tokens or when the model's
    context is full.

    Raises ValueError for a prompt the model cannot read or a setting out of range.
    """
    sampling = Sampling(0.0 if greedy else temperature, top_k, top_p)
    if max_tokens < 0:
        raise ValueError(f"max_tokens must be 0 or more, got {max_tokens}.")
    model = checkpoint.model
    if model.config.attention.mask == "full":
        raise ValueError(
            "this model reads every text in both directions, so it cannot continue one; use a causal model."
        )
    ids = prompt_ids(checkpoint, prompt)
    ends = checkpoint.end_ids if stop_at_end else ()
    length = min(len(ids) + max_tokens, model.config.context)
    cache = KVCache(model.config, 1, length, next(model.parameters()))
    generator = torch.Generator().manual_seed(seed)
    new = torch.tensor([ids], device=model.device)
    for index in range(length - len(ids)):
        logits = model(new, cache=cache, logits_at=slice(-1, None))[0, -1]
        token = choose(logits, sampling, generator)
        yield Step(index, token, logits, sampling, tuple(ids), checkpoint)
        if token in ends:
            return
        ids = (*ids, token)
        new = torch.tensor([[token]], device=model.device)


def choose(logits: Tensor, sampling: Sampling, generator: torch.Generator) -> int:
    if sampling.temperature == 0:
        return int(logits.argmax())
    return draw(distribution(logits, sampling).probabilities.cpu(), generator)


def prompt_ids(checkpoint: Checkpoint, prompt: str | Encoding | Sequence[int] | Tensor) -> tuple[int, ...]:
    if isinstance(prompt, str):
        if checkpoint.tokenizer is None:
            raise ValueError("this checkpoint has no tokenizer, so its prompt must be a list of token ids, got text.")
        prompt = checkpoint.tokenizer.encode(prompt)
    ids, _, _ = batch(prompt, checkpoint.model.device)
    if len(ids) != 1:
        raise ValueError(f"generate must get one text, got {len(ids)}; call it once for each.")
    checkpoint.model.check(ids)
    return tuple(ids[0].tolist())
