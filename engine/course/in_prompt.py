"""The same few rows learned in two ways: read in a prompt, or trained into the weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from engine.generation.few_shot import BEHIND, PromptTable, line_behind, longest, prompt_of
from engine.model.transformer import Transformer
from engine.runtime import library
from engine.tokenizers import Tokenizer

Row = tuple[str, str]


@dataclass(frozen=True)
class Shot:
    """Answer of a model to a word after `k` rows: what it writes, greedily, and its probability of the right
    answer with its line break."""

    k: int
    prompt: str
    written: str
    probability: float


@dataclass(frozen=True)
class FineTuning:
    """Probability of the right answer, asked with no row above, before each step of fine-tuning and after the last."""

    probabilities: list[float]
    losses: list[float]


def answer_loss(
    model: Transformer, tokenizer: Tokenizer, prompt: str, answer: str, weights: Mapping[str, Tensor]
) -> Tensor:
    """Sum of -ln p, in nats, of the tokens of an answer and its line break behind a prompt; `weights` stand in place of
    the model's own."""
    before = tokenizer.encode(prompt).ids
    ids = torch.tensor([[*before, *tokenizer.encode(f" {answer}{BEHIND}", special=False).ids]])
    logits = functional_call(model, dict(weights), (ids,))[0, len(before) - 1 : -1]
    return cross_entropy(logits, ids[0, len(before) :], reduction="sum")


@torch.no_grad()
def shots(name: str, rows: Sequence[Row], query: str, answer: str) -> list[Shot]:
    """A word asked behind none of the rows, behind the first, behind the first two, and so on (Brown et al. 2020,
    section 2)."""
    checkpoint = library.checkpoint(name)
    assert checkpoint.tokenizer is not None
    most = longest(checkpoint, PromptTable("rows", (*rows, (query, answer))))
    found = []
    for k in range(len(rows) + 1):
        prompt = prompt_of(rows[:k], query)
        loss = answer_loss(checkpoint.model, checkpoint.tokenizer, prompt, answer, {})
        found.append(Shot(k, prompt, line_behind(checkpoint, prompt, most), float((-loss).exp())))
    return found


def fine_tune(name: str, rows: Sequence[Row], query: str, answer: str, steps: int, rate: float) -> FineTuning:
    """Trains all weights on the rows, each a text of its own, by Adam, and asks for the word with no row above it."""
    checkpoint = library.checkpoint(name)
    assert checkpoint.tokenizer is not None
    model, tokenizer = checkpoint.model, checkpoint.tokenizer
    leaves = {at: weight.detach().clone().requires_grad_() for at, weight in model.named_parameters()}
    optimiser = torch.optim.Adam(leaves.values(), lr=rate)
    probabilities, losses = list[float](), list[float]()
    for step in range(steps + 1):
        with torch.no_grad():
            asked = answer_loss(model, tokenizer, prompt_of((), query), answer, leaves)
        probabilities.append(float((-asked).exp()))
        loss = torch.stack([answer_loss(model, tokenizer, prompt_of((), one), out, leaves) for one, out in rows]).mean()
        losses.append(float(loss.detach()))
        if step < steps:
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return FineTuning(probabilities, losses)
