"""What a checkpoint asks for when it writes: tokens that it forces and forbids, and settings where nobody gives others.

Names, order and edges are those of transformers' GenerationConfig and its logits processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor

if TYPE_CHECKING:
    from engine.generation.stopping import Stopping

FORBIDDEN = float("-inf")
Ids = tuple[int, ...]


@dataclass(frozen=True)
class GenerationDefaults:
    """Settings of a checkpoint, None where it says nothing. Lengths count tokens: `min_length` and `max_length` with
    the prompt (behind an encoder the target's), the `new` ones without."""

    forced_bos_token_id: int | None = None
    forced_eos_token_id: Ids | None = None
    bad_words_ids: tuple[Ids, ...] = ()
    suppress_tokens: Ids = ()
    begin_suppress_tokens: Ids = ()
    sequence_bias: tuple[tuple[Ids, float], ...] = ()
    no_repeat_ngram_size: int = 0
    encoder_no_repeat_ngram_size: int = 0
    encoder_repetition_penalty: float = 1.0
    exponential_decay_length_penalty: tuple[int, float] | None = None
    min_length: int = 0
    min_new_tokens: int = 0
    max_length: int | None = None
    max_new_tokens: int | None = None
    do_sample: bool | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical_p: float | None = None
    repetition_penalty: float | None = None
    num_beams: int | None = None
    length_penalty: float | None = None
    early_stopping: bool | Literal["never"] | None = None
    renormalize_logits: bool = False
    stop_strings: tuple[str, ...] = ()

    @property
    def constrains(self) -> bool:
        """True where it changes logits by itself, whatever the settings of sampling."""
        return any(getattr(self, name) != getattr(NOTHING, name) for name in CONSTRAINTS)

    def value(self, name: str, given: Any, usual: Any) -> Any:
        """A setting: what is `given`, else what the checkpoint asks for, else what is `usual`."""
        own = getattr(self, name)
        return given if given is not None else usual if own is None else own

    def room(self, tokens: int) -> int | None:
        """Number of tokens to write after a prompt of so many `tokens`; None where it does not say."""
        if self.max_new_tokens is not None:
            return self.max_new_tokens
        return None if self.max_length is None else max(0, self.max_length - tokens)


NOTHING = GenerationDefaults()
CONSTRAINTS = ("forced_bos_token_id", "forced_eos_token_id", "bad_words_ids", "suppress_tokens",
               "begin_suppress_tokens", "sequence_bias", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size",
               "encoder_repetition_penalty", "exponential_decay_length_penalty", "min_length",
               "min_new_tokens")  # fmt: skip


def constrain(scores: Tensor, before: Sequence[int], ending: Stopping) -> Tensor:
    """`scores` (vocab; logits, in a beam search log-probabilities) of what follows the ids `before` as the checkpoint
    changes them: -inf where it forbids a token."""
    prompt = ending.prompt
    asked = prompt.checkpoint.writing
    if not asked.constrains:
        return scores
    before, began, ends = tuple(before), len(prompt.ids), list(prompt.checkpoint.end_ids)
    for tokens, bias in asked.sequence_bias:
        if follows(before, tokens):
            scores = change(scores, [tokens[-1]], scores[tokens[-1]] + bias)
    source = sorted({id for id in prompt.source or prompt.ids if id < len(scores)})
    if asked.encoder_repetition_penalty != 1:
        own = scores[source]
        penalty = 1 / asked.encoder_repetition_penalty
        scores = change(scores, source, torch.where(own < 0, own * penalty, own / penalty))
    forbidden = {
        *repeated(before, before, asked.no_repeat_ngram_size),
        *repeated(prompt.source or prompt.ids, before, asked.encoder_no_repeat_ngram_size),
        *(word[-1] for word in asked.bad_words_ids if not is_end(word, ends) and follows(before, word)),
        *(ends if len(before) < max(asked.min_length, began + asked.min_new_tokens) else ()),
    }
    scores = forbid(scores, forbidden)
    if asked.forced_bos_token_id is not None and len(before) == 1:
        scores = force(scores, (asked.forced_bos_token_id,))
    if asked.forced_eos_token_id is not None and len(before) == began + ending.room - 1:
        scores = force(scores, asked.forced_eos_token_id)
    if asked.exponential_decay_length_penalty is not None and ends:
        start, factor = asked.exponential_decay_length_penalty
        own, late = scores[ends], len(before) - began - start
        if late > 0:
            more = (own.abs() * (factor**late - 1)).masked_fill(~own.isfinite(), 0.0)
            scores = change(scores, ends, own + more)
    first = began + (began == 1 and asked.forced_bos_token_id is not None)
    begins = asked.begin_suppress_tokens if len(before) == first else ()
    return forbid(scores, {*asked.suppress_tokens, *begins})


def follows(before: Ids, word: Ids) -> bool:
    """True where the last token of a `word` may come now because all before it just came."""
    return len(word) <= len(before) + 1 and before[len(before) + 1 - len(word) :] == word[:-1]


def is_end(word: Ids, ends: Sequence[int]) -> bool:
    return len(word) == 1 and word[0] in ends


def repeated(text: Sequence[int], before: Ids, size: int) -> Iterator[int]:
    """Tokens that would make the last `size` tokens a run that stands in `text` already (Paulus et al. 2018)."""
    if not size or len(before) + 1 < size:
        return
    last = before[len(before) + 1 - size :]
    for at in range(len(text) - size + 1):
        if tuple(text[at : at + size - 1]) == last:
            yield text[at + size - 1]


def change(scores: Tensor, ids: Sequence[int], values: Tensor | float) -> Tensor:
    changed = scores.clone()
    changed[list(ids)] = values
    return changed


def forbid(scores: Tensor, ids: set[int]) -> Tensor:
    within = [id for id in sorted(ids) if id < len(scores)]
    return change(scores, within, FORBIDDEN) if within else scores


def force(scores: Tensor, ids: Ids) -> Tensor:
    return change(torch.full_like(scores, FORBIDDEN), ids, 0.0)
