"""Tokens that a checkpoint forces and forbids when it writes.

Order and edges are those of transformers' logits processors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from engine.checkpoints.generation_defaults import Ids
from engine.generation.sampling import penalize
from engine.plurals import count_words

if TYPE_CHECKING:
    from engine.generation.stopping import StopRules

FORBIDDEN = float("-inf")


def constrain(scores: Tensor, before: Sequence[int], ending: StopRules, penalty: float) -> Tensor:
    """`scores` (vocab; logits, in a beam search log-probabilities) of what follows the ids `before` under the
    repetition `penalty`, and as the checkpoint changes them: -inf where it forbids a token."""
    prompt = ending.prompt
    asked = prompt.checkpoint.writing.constraints
    if not asked.names:
        return penalize(scores, penalty, before)
    before, began, ends = tuple(before), len(prompt.ids), list(prompt.checkpoint.end_ids)
    for tokens, bias in dict(asked.sequence_bias).items():  # of two for one sequence the last counts
        if follows(before, tokens):
            scores = change(scores, [tokens[-1]], scores[tokens[-1]] + bias)
    scores = penalize(scores, 1 / asked.encoder_repetition_penalty, prompt.source or prompt.ids)
    scores = penalize(scores, penalty, before)
    scores = forbid(scores, set().union(*list_forbidden(before, ending).values()))
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
    return forbid(scores, set().union(*list_suppressed(before, ending).values()))


def list_forbidden(before: Ids, ending: StopRules) -> dict[str, set[int]]:
    """Tokens that may not follow, unless they are forced, by the setting that says so."""
    prompt = ending.prompt
    asked, ends = prompt.checkpoint.writing.constraints, list(prompt.checkpoint.end_ids)
    least, named = asked.min_length, "min_length"
    if asked.min_new_tokens is not None:
        least, named = len(prompt.ids) + asked.min_new_tokens, "min_new_tokens"
    read = prompt.source or prompt.ids
    return {
        "no_repeat_ngram_size": {*find_repeats(before, before, asked.no_repeat_ngram_size)},
        "encoder_no_repeat_ngram_size": {*find_repeats(read, before, asked.encoder_no_repeat_ngram_size)},
        "bad_words_ids": {word[-1] for word in asked.bad_words_ids if not is_end(word, ends) and follows(before, word)},
        named: {*ends} if len(before) < least else set(),
    }


def list_suppressed(before: Ids, ending: StopRules) -> dict[str, set[int]]:
    """Tokens that may not follow, forced or not, by the setting that says so."""
    asked, began = ending.prompt.checkpoint.writing.constraints, len(ending.prompt.ids)
    first = began + (began == 1 and asked.forced_bos_token_id is not None)
    begins = asked.begin_suppress_tokens if len(before) == first else ()
    return {"suppress_tokens": {*asked.suppress_tokens}, "begin_suppress_tokens": {*begins}}


def require_token(scores: Tensor, before: Sequence[int], ending: StopRules) -> None:
    """Raise ValueError, naming the settings, where a checkpoint forbids every token that could follow `before`.

    transformers then ends in a sum of no numbers where it draws, and writes token 0 where it does not.
    """
    if not bool((scores == FORBIDDEN).all()):
        return
    before, asked = tuple(before), ending.prompt.checkpoint.writing.constraints
    named = [name for name, ids in (list_forbidden(before, ending) | list_suppressed(before, ending)).items() if ids]
    biased = any(bias == FORBIDDEN for _, bias in asked.sequence_bias)
    forced = [name for name in ("forced_bos_token_id", "forced_eos_token_id") if getattr(asked, name) is not None]
    named += ["sequence_bias"] * biased + forced
    raise ValueError(
        f"{', '.join(named)} of the checkpoint's generation_config.json leave{'s' if len(named) == 1 else ''} no token "
        f"to follow {count_words(len(before) - len(ending.prompt.ids), 'token')}; take one of the ids out of them, or "
        "write fewer tokens."
    )


def follows(before: Ids, word: Ids) -> bool:
    """True where the last token of a `word` may come now because all before it just came."""
    return len(word) <= len(before) + 1 and before[len(before) + 1 - len(word) :] == word[:-1]


def is_end(word: Ids, ends: Sequence[int]) -> bool:
    return len(word) == 1 and word[0] in ends


def find_repeats(text: Sequence[int], before: Ids, size: int) -> Iterator[int]:
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
