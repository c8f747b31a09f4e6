"""What a model is asked to predict, and how wrong it was."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

UNASKED = -100  # a target that counts for nothing; PyTorch's own number for it


@dataclass(frozen=True)
class Examples:
    """`ids` and `targets` are both batch pos; a target is the id that should follow, or UNASKED."""

    ids: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> Examples:
        return Examples(self.ids.to(device, non_blocking=True), self.targets.to(device, non_blocking=True))

    def share(self, rank: int, world: int) -> Examples:
        """Every `world`-th row from `rank` on: what one of several processes reads of this batch."""
        return Examples(self.ids[rank::world], self.targets[rank::world])


def share_of(part: Examples, whole: Examples) -> float:
    """The share of the counted tokens of `whole` that are in `part`; 1 where that is all of it."""
    return int((part.targets != UNASKED).sum()) / max(int((whole.targets != UNASKED).sum()), 1)


def next_tokens(windows: Tensor, asked: Tensor | None = None) -> Examples:
    """`windows` (batch pos+1) as inputs and the tokens that follow; `asked` (batch pos) is True where that counts."""
    ids, targets = windows[:, :-1], windows[:, 1:]
    return Examples(ids, targets if asked is None else targets.masked_fill(~asked, UNASKED))


def loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy in nats a counted token."""
    return cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=UNASKED)


def accuracy(logits: Tensor, targets: Tensor) -> Tensor:
    """The share of counted tokens that were the model's first choice."""
    asked = targets != UNASKED
    return ((logits.argmax(-1) == targets) & asked).sum() / asked.sum()
