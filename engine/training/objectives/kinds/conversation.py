"""What the assistant writes in a conversation."""

from __future__ import annotations

from typing import Any

from engine.data.own import Columns
from engine.generation.generate import generate
from engine.scoring.examples import UNASKED
from engine.training.objectives.kind import CAUSAL, ObjectiveKind
from engine.training.sources.conversations import Conversations, tokenizer_with_template
from engine.training.trainer import Trainer

LONGEST = 100  # tokens of an answer that is shown


def sample_answer(trainer: Trainer) -> str:
    """A held-out conversation as far as the assistant's first turn, and what the model writes there."""
    examples, tokenizer = next(trainer.source.held_out(1)), trainer.source.tokenizer
    assert tokenizer is not None
    first = int((examples.targets[0] != UNASKED).nonzero()[0])
    prompt = examples.ids[0, : first + 1].tolist()
    steps = generate(trainer.checkpoint(), prompt, max_tokens=LONGEST, greedy=True)
    return tokenizer.decode([*prompt, *(step.id for step in steps)], special=False)


def measure_answers(_: Trainer) -> dict[str, Any]:
    """Loss and accuracy on held-out conversations say it, and the card has them of every model."""
    return {}


OBJECTIVE = ObjectiveKind(
    "conversation", 17, {Columns: Conversations}, measure=measure_answers, sample=sample_answer,
    unit="nats a token of the assistant", needs=CAUSAL,
    check_start=tokenizer_with_template, forms=("conversations",),
    like="python-reference", about="Learns to answer in conversations ({}).",
)  # fmt: skip
