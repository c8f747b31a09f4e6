"""One batch: what a model reads, and what it is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor, device

UNASKED = -100  # a target that counts for nothing; PyTorch's own number for it


@dataclass(frozen=True)
class Counts:
    """Targets that count, of the head and of the second head, and rows."""

    first: int
    second: int = 0
    rows: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.first + other.first, self.second + other.second, self.rows + other.rows)


@dataclass(frozen=True)
class Examples:
    """`inputs` are called as in `Transformer.forward_with_pooled`, each with the rows of the batch as its first axis.

    `targets` is batch pos, or batch where the whole row has one answer: the right class, or UNASKED. `second` (batch)
    is the same for a second head, or batch pos for a language head beside one over classes. `whole`: what a row asks is
    one answer, right only if each of its tokens is. `spans`: the targets, batch 2, are the positions at which an answer
    starts and ends.
    """

    inputs: Mapping[str, Tensor]
    targets: Tensor
    second: Tensor | None = None
    whole: bool = False
    spans: bool = False

    @property
    def ids(self) -> Tensor:
        return self.inputs["ids"]

    @property
    def counts(self) -> Counts:
        second = 0 if self.second is None else int((self.second != UNASKED).sum())
        return Counts(int((self.targets != UNASKED).sum()), second, len(self.targets))

    @property
    def tokens(self) -> int:
        """Counts the tokens that are read, on both sides and without padding; a picture of patches counts as one."""
        if self.ids.is_floating_point():
            return len(self.ids)
        padded = (("ids", "padding"), ("target", "target_padding"))
        read = [(self.inputs[name], self.inputs.get(padding)) for name, padding in padded if name in self.inputs]
        return sum(ids.numel() if real is None else int(real.sum()) for ids, real in read)

    def to(self, where: device) -> Examples:
        inputs = {name: tensor.to(where, non_blocking=True) for name, tensor in self.inputs.items()}
        second = None if self.second is None else self.second.to(where, non_blocking=True)
        return Examples(inputs, self.targets.to(where, non_blocking=True), second, self.whole, self.spans)

    def share(self, rank: int, world: int) -> Examples:
        """Every `world`-th row from `rank` on: what one of several processes reads of this batch."""
        inputs = {name: tensor[rank::world] for name, tensor in self.inputs.items()}
        second = None if self.second is None else self.second[rank::world]
        return Examples(inputs, self.targets[rank::world], second, self.whole, self.spans)
