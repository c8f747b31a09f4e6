"""Tokens that a checkpoint forces and forbids when it writes.

Order and edges are those of transformers' logits processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.checkpoints.generation_defaults import Ids

if TYPE_CHECKING:
    from engine.generation.stopping import Stopping

FORBIDDEN = float("-inf")


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
