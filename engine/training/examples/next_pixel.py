"""A picture as one row of palette ids, each predicted from those before it (Chen et al. 2020, section 2.1)."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.scoring.examples import UNASKED, Examples


def next_pixels(colours: Tensor, start: int) -> Examples:
    """`colours` is batch pixel, in raster order; `start` is what stands before the first. Nothing follows the last."""
    first = torch.full((len(colours), 1), start)
    last = torch.full((len(colours), 1), UNASKED)
    return Examples({"ids": torch.cat([first, colours], dim=1)}, torch.cat([colours, last], dim=1))
