"""The same deep stack with and without residual connections, and how much gradient reaches each of its blocks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from engine.model.config import MLP, Attention, ModelConfig
from engine.model.transformer import Transformer

VOCAB, PERIOD, LENGTH, BATCH, RATE = 16, 4, 16, 16, 3e-3


@dataclass(frozen=True)
class StackTraining:
    """`losses` (step) in nats, and `gradients` (step layer): the norm of the gradient of each block's weights."""

    losses: list[float]
    gradients: Tensor


def branch_gradients(x: float, weight: float) -> tuple[float, float]:
    """Gradients of y = x + weight * x by way of either branch: the addition hands the same 1 to both."""
    skip, branch = (torch.tensor(x, requires_grad=True) for _ in range(2))
    (skip + weight * branch).backward()
    assert skip.grad is not None and branch.grad is not None
    return float(skip.grad), float(branch.grad)


def deep_stack(layers: int, residual: bool, seed: int) -> Transformer:
    """A decoder of many narrow blocks, with random weights."""
    torch.manual_seed(seed)
    config = ModelConfig(VOCAB, LENGTH, 32, layers, Attention(heads=2), MLP(64), residual=residual)
    return Transformer(config)


def repeating_batch(generator: torch.Generator) -> Tensor:
    """Rows that repeat four random tokens, batch pos: predictable from the fifth token on."""
    start = torch.randint(VOCAB, (BATCH, PERIOD), generator=generator)
    return start.repeat(1, LENGTH // PERIOD)


def train_stack(layers: int, residual: bool, steps: int, seed: int = 0) -> StackTraining:
    """Trains a deep stack with Adam on rows that repeat, and keeps the gradient of each block at every step."""
    model = deep_stack(layers, residual, seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    generator = torch.Generator().manual_seed(seed)
    losses, gradients = [], []
    for _ in range(steps):
        ids = repeating_batch(generator)
        logits = model(ids)
        loss = cross_entropy(logits[:, PERIOD - 1 : -1].flatten(0, 1), ids[:, PERIOD:].flatten())
        optimiser.zero_grad()
        loss.backward()
        losses.append(loss.item())
        gradients.append([block_gradient(block) for block in model.blocks])
        optimiser.step()
    return StackTraining(losses, torch.tensor(gradients))


def block_gradient(block: torch.nn.Module) -> float:
    found = [weight.grad.square().sum() for weight in block.parameters() if weight.grad is not None]
    return float(torch.stack(found).sum().sqrt())
