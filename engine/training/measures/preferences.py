"""What a model that learned from preferences answers; how good that is, its held-out scores say."""

from __future__ import annotations

from typing import Any

import torch

from engine.training.policy.judge import rewards_of
from engine.training.policy.learner import PreferenceLearner
from engine.training.trainer import Trainer


def measure_preferences(trainer: Trainer) -> dict[str, Any]:
    """The prompts that were answered; their scores stand among the held-out ones."""
    return {"answers": len(learner_of(trainer).samples(trainer.step))}


def sample_answer(trainer: Trainer) -> str:
    """The first prompt that is shown, with its answer; of a reward model a held-out pair with what it is worth."""
    learner = learner_of(trainer)
    if samples := learner.samples(trainer.step):
        return f"{samples[0]['prompt']}{samples[0]['answer']}"
    pairs = learner.source.answered_pairs("held_out", learner.source.shelves["held_out"].fit[:1].tolist())
    ids, real = pairs.ids[0].to(trainer.device), pairs.real[0].to(trainer.device)
    with torch.no_grad():
        rewards = rewards_of(trainer.result, ids, real).tolist()
    texts = [learner.source.corpus.tokenizer.decode(row[kept].tolist()) for row, kept in zip(ids, real, strict=True)]
    return "\n".join(f"{reward:+.3f} {text}" for reward, text in zip(rewards, texts, strict=True))


def learner_of(trainer: Trainer) -> PreferenceLearner:
    assert isinstance(trainer.learner, PreferenceLearner)
    return trainer.learner
