"""What a language model writes."""

from __future__ import annotations

from typing import Any

from engine.data.kinds.everyday import Everyday
from engine.data.kinds.in_context import InContext
from engine.data.kinds.repeats import Repeats
from engine.data.kinds.stories import Stories
from engine.generation.generate import generate
from engine.training.measures import distance, everyday, in_context
from engine.training.trainer import Trainer

PROMPT = "Once upon a time"
LONGEST = 300  # tokens; a story ends before


def measure_text(trainer: Trainer) -> dict[str, Any]:
    """Loss and accuracy on held-out text say it, and the card has them of every model; of some data there is more."""
    data = trainer.recipe.data.table
    if isinstance(data, InContext):
        return in_context.measure_in_context(trainer)
    if isinstance(data, Stories) and data.long:
        return distance.measure_distance(trainer)
    return everyday.measure_everyday(trainer) if isinstance(data, Everyday) else {}


def sample_text(trainer: Trainer) -> str:
    """After PROMPT, after the beginning of a held-out text, or after a segment and a half; of prompts one answer."""
    data, tokenizer = trainer.recipe.data.table, trainer.source.tokenizer
    if isinstance(data, InContext):
        return in_context.sample_in_context(trainer)
    assert tokenizer is not None
    repeats = data if isinstance(data, Repeats) else None
    if not isinstance(data, Stories | Repeats):
        ids = next(trainer.source.held_out(1)).ids[0, :20].tolist()
    else:
        prompt = PROMPT if repeats is None else (repeats.symbols[:8] * 2)[:12]
        ids = list(tokenizer.encode(prompt, special=False).ids)[: trainer.result.config.context]
    steps = generate(trainer.checkpoint(), ids, max_tokens=LONGEST, temperature=0.7, greedy=repeats is not None)
    new = [step.id for step in steps]
    return tokenizer.decode([*ids, *new], special=False)
