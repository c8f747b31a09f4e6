"""What answers are worth: by a rule, or by a reward model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, device

from engine.checkpoints import Checkpoint
from engine.model.transformer import Transformer
from engine.plurals import count_words
from engine.tokenizers import Tokenizer
from engine.training.base.base import load_base
from engine.training.policy.rollouts import SampledAnswers
from engine.training.policy.rule import rules

Judge = Callable[[SampledAnswers], Tensor]  # to a reward for each answer, (answer,)


def open_judge(name: str, tokenizer: Tokenizer, where: device) -> Judge:
    """The rule of that name, else the reward model: whatever a recipe's base may be.

    Raises ValueError where there is none, it gives no single number, or its vocabulary is not that of `tokenizer`.
    """
    if rule := rules().get(name):
        return lambda answers: torch.tensor([rule.score(*text) for text in answers.texts], device=where)
    model = open_reward_model(name, tokenizer).model.to(where)
    return lambda answers: rewards_of(model, answers.ids, answers.real)


def open_reward_model(name: str, tokenizer: Tokenizer) -> Checkpoint:
    """Raises ValueError as `open_judge` does."""
    try:
        checkpoint = load_base(name)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"preference.reward must be a rule ({', '.join(rules())}) or a reward model that is here, and {error}"
        ) from None
    head = checkpoint.config.head
    if head.kind != "sequence" or head.classes != 1:
        raise ValueError(
            f"preference.reward must be a model with one number for a text, got {name} with the head {head.kind!r} and "
            f'{count_words(head.classes, "class", "classes")}; train one with objective.kind = "reward".'
        )
    if checkpoint.tokenizer is None or not same_vocabulary(checkpoint.tokenizer, tokenizer):
        raise ValueError(
            f"preference.reward must read the tokens of the base, and {name} has another vocabulary; train a reward "
            "model from the same base."
        )
    return checkpoint


def same_vocabulary(first: Tokenizer, second: Tokenizer) -> bool:
    size = first.vocab_size
    return size == second.vocab_size and all(first.piece(id) == second.piece(id) for id in range(size))


@torch.no_grad()
def rewards_of(model: Transformer, ids: Tensor, real: Tensor) -> Tensor:
    """Rewards (text,) of texts, both (text pos)."""
    return model(ids, padding=real)[:, 0].float()


@torch.no_grad()
def running_rewards(model: Transformer, ids: Tensor) -> Tensor:
    """Reward (pos,) of one text, ids (pos,), as it is after each of its tokens: what the model gives where it ends
    there."""
    texts = ids.repeat(len(ids), 1)
    return rewards_of(model, texts, torch.ones_like(texts, dtype=torch.bool).tril())
