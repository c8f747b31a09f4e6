"""MXFP4: blocks of 32 four-bit floating-point numbers with one power of two (OCP Microscaling Formats 1.0, section
5.2)."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.quantised.scheme import Parts, Scheme, nibbles

DOUBLED = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)  # E2M1, times two
BIAS = 128  # of the exponent, with the two


def read_mxfp4(blocks: Tensor) -> Parts:
    power = torch.exp2(blocks[:, :1].double() - BIAS)
    doubled = torch.tensor(DOUBLED, dtype=torch.float32, device=blocks.device)
    return Parts(doubled[nibbles(blocks[:, 1:]).int()], power.float())


SCHEMES = (Scheme("MXFP4", 32, 17, read_mxfp4),)
