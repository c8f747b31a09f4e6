"""Documents that are read whole, a row each."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.training.sources.corpus import Tokens

POOL = 8  # batches drawn together, to be sorted by length


@dataclass(frozen=True)
class Shelf:
    """Documents of `tokens` that can be read at once: `fit` are their indexes and `lengths` how much each reads."""

    tokens: Tokens
    fit: Tensor
    lengths: Tensor

    def draw(self, size: int, chance: torch.Generator) -> list[int]:
        """`size` documents that need little filling up: of `POOL` times as many, sorted by length, one stretch."""
        drawn = torch.randint(len(self.fit), (POOL * size,), generator=chance)
        drawn = drawn[self.lengths[drawn].argsort(stable=True)]
        which = int(torch.randint(POOL, (1,), generator=chance))
        chosen: list[int] = self.fit[drawn[which * size : (which + 1) * size]].tolist()
        return chosen


def make_shelf(tokens: Tokens, lengths: Tensor, context: int) -> Shelf:
    """The documents of no more than `context` tokens by `lengths`. Raises ValueError where that is none."""
    fit = (lengths <= context).nonzero().flatten()
    if not len(fit):
        raise ValueError(f"batch.context must fit a document, got {context}; the shortest has {int(lengths.min())}.")
    return Shelf(tokens, fit, lengths[fit])
