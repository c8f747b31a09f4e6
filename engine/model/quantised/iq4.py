"""ggml's IQ4_NL and IQ4_XS: four bits choose among 16 levels that do not lie evenly (ggml-quants.c)."""

from __future__ import annotations

import torch
from torch import Tensor

from engine.model.quantised.scheme import Parts, Scheme, bits, half, nibbles

LEVELS = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)


def levels(chosen: Tensor) -> Tensor:
    return torch.tensor(LEVELS, dtype=torch.float32, device=chosen.device)[chosen.int()]


def read_iq4_nl(blocks: Tensor) -> Parts:
    return Parts(levels(nibbles(blocks[:, 2:])), half(blocks, 0))


def read_iq4_xs(blocks: Tensor) -> Parts:
    upper = bits(blocks[:, 2:4], (0, 2, 4, 6), 3).mT.reshape(-1, 8)
    lower = bits(blocks[:, 4:8], (0, 4), 15).mT.reshape(-1, 8)
    scale = half(blocks, 0) * ((lower | upper << 4).float() - 32)
    chosen = bits(blocks[:, 8:].reshape(-1, 8, 16), (0, 4), 15).reshape(-1, 8, 32)
    return Parts(levels(chosen), scale[..., None])


SCHEMES = (Scheme("IQ4_NL", 32, 18, read_iq4_nl, (0,)), Scheme("IQ4_XS", 256, 136, read_iq4_xs, (0,)))
