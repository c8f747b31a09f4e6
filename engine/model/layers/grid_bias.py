"""What the distance of two patches in rows and columns adds to a score (Bao et al. 2022, BEiT, section 2.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from engine.model.config import Patches
from engine.model.layers.module import Module

OUTSIDE = 3  # rows behind those of the distances: from [CLS] to a patch, from a patch to [CLS], from [CLS] to itself


class GridBias(Module):
    """`weight` is distance head: (2 side - 1)^2 distances, then those of [CLS]."""

    rows: Tensor

    def __init__(self, patches: Patches, heads: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty((2 * patches.side - 1) ** 2 + OUTSIDE, heads))
        self.register_buffer("rows", grid_rows(patches.side), persistent=False)

    def forward(self) -> Tensor:
        """head pos key."""
        return self.weight[self.rows].permute(2, 0, 1)


def grid_rows(side: int) -> Tensor:
    """pos key: which row of the weight a pair has; position 0 is [CLS]."""
    places = torch.cartesian_prod(torch.arange(side, device="cpu"), torch.arange(side, device="cpu"))
    apart = places[:, None] - places + side - 1  # patch patch (row column), from 0
    count = (2 * side - 1) ** 2
    rows = torch.empty(side**2 + 1, side**2 + 1, dtype=torch.long, device="cpu")
    rows[1:, 1:] = apart[..., 0] * (2 * side - 1) + apart[..., 1]
    rows[0, :], rows[:, 0], rows[0, 0] = count, count + 1, count + 2
    return rows
