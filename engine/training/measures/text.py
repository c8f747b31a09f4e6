"""What a language model writes."""

from __future__ import annotations

from typing import Any

from engine.generation.generate import generate
from engine.training.measures import distance, everyday, in_context
from engine.training.trainer import Trainer

PROMPT = "Once upon a time"
LONGEST = 300  # tokens; a story ends before


def measure_text(trainer: Trainer) -> dict[str, Any]:
    """Loss and accuracy on held-out text say it, and the card has them of every model; of some data there is more."""
    data = trainer.recipe.data
    if data.in_context is not None:
        return in_context.measure_in_context(trainer)
    if data.stories is not None and data.stories.long:
        return distance.measure_distance(trainer)
    return everyday.measure_everyday(trainer) if data.everyday is not None else {}


def sample_text(trainer: Trainer) -> str:
    """After PROMPT, after the beginning of a held-out text, or after a segment and a half; of prompts one answer."""
    if trainer.recipe.data.in_context is not None:
        return in_context.sample_in_context(trainer)
    data, tokenizer = trainer.recipe.data, trainer.source.tokenizer
    assert tokenizer is not None
    repeats = data.repeats
    if data.stories is None and repeats is None:
        ids = next(trainer.source.held_out(1)).ids[0, :20].tolist()
    else:
        prompt = PROMPT if repeats is None else (repeats.symbols[:8] * 2)[:12]
        ids = list(tokenizer.encode(prompt, special=False).ids)[: trainer.result.config.context]
    steps = generate(trainer.checkpoint(), ids, max_tokens=LONGEST, temperature=0.7, greedy=repeats is not None)
    new = [step.id for step in steps]
    return tokenizer.decode([*ids, *new], special=False)
