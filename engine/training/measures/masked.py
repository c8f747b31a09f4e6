"""How often a hidden word is guessed, and of pairs how often it is told whether they belong together."""

from __future__ import annotations

from typing import Any

import torch

from engine.scoring.examples import UNASKED
from engine.training.trainer import Trainer

PAIRS = 2_000


def measure_masked(trainer: Trainer) -> dict[str, Any]:
    batches = max(PAIRS // trainer.recipe.batch.size, 1)
    scores = trainer.measure(batches)
    read = batches * trainer.recipe.batch.size
    if "next_sentence_accuracy" not in scores:
        return {"masked_accuracy": scores["accuracy"], "texts": read}
    return {
        "masked_accuracy": scores["accuracy"],
        "next_sentence_accuracy": scores["next_sentence_accuracy"],
        "pairs": read,
    }


@torch.no_grad()
def sample_masked(trainer: Trainer) -> str:
    """A held-out pair as it was read, and what the model put in the place of each hidden or replaced word."""
    examples = next(trainer.source.held_out(1)).to(trainer.full_model.device)
    logits = trainer.result(**examples.inputs)
    tokenizer = trainer.source.tokenizer
    assert tokenizer is not None
    read, asked = examples.ids[0], examples.targets[0] != UNASKED
    guessed = torch.where(asked, logits[0].argmax(-1), read)
    whole = examples.inputs.get("padding", torch.ones_like(examples.ids, dtype=torch.bool))[0]
    return "\n".join(" ".join(map(tokenizer.piece, row[whole].tolist())) for row in (read, guessed))
