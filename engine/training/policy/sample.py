"""Two answers to each prompt, drawn by a model, for a person or a rule to choose between."""

from __future__ import annotations

from collections.abc import Sequence

from engine.checkpoints import Checkpoint
from engine.tokenizers.continuation import read_continuation
from engine.training.policy.rollouts import draw_answers, read_drawn


def sample_answers(
    checkpoint: Checkpoint, prompts: Sequence[str], tokens: int = 32, temperature: float = 1.0, seed: int = 0
) -> list[tuple[str, str]]:
    """Two answers to each prompt, of at most `tokens` tokens or up to an end token, which the text leaves out.

    Raises ValueError for a checkpoint without a tokenizer, and a prompt of no token or too many.
    """
    tokenizer = checkpoint.tokenizer
    if tokenizer is None:
        raise ValueError("answers are drawn by a checkpoint that reads texts, and this one has no tokenizer.")
    asked = [tuple(read_continuation(tokenizer, prompt, "")[0]) for prompt in prompts]
    if empty := next((prompt for prompt, ids in zip(prompts, asked, strict=True) if not ids), None):
        raise ValueError(f"a prompt must have at least one token, got {empty!r:.80}; write one.")
    twice = [ids for ids in asked for _ in range(2)]
    ends = checkpoint.end_ids
    drawn = draw_answers(checkpoint.model, twice, tokens, seed, temperature, ends)
    kept = [tuple(id for id in ids if id not in ends) for ids in drawn]
    texts = [read_drawn(tokenizer, *each)[1] for each in zip(twice, kept, strict=True)]
    return list(zip(texts[0::2], texts[1::2], strict=True))
