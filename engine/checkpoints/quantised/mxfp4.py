"""MXFP4 as gpt-oss stores its experts: blocks of 32 four-bit floating-point numbers, two in a byte, and their powers of
two (OCP Microscaling Formats 1.0, section 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import torch
from torch import Tensor

from engine.checkpoints.quantisation import BYTES, Options, Quantisation, QuantisedMatrix, check_axes, check_tensor
from engine.checkpoints.weights import Weights
from engine.model.quantised.mxfp4 import BIAS, DOUBLED

BLOCKS = "_blocks"


def find(weights: Weights, options: Options) -> Mapping[str, QuantisedMatrix]:
    found = {}
    for name in (one for one in weights.shapes if one.endswith(BLOCKS)):
        matrix = name.removesuffix(BLOCKS)
        experts, columns, groups, _ = check_axes(weights, name, BYTES, 4)
        check_tensor(weights, name, BYTES, (experts, columns, groups, 16))
        check_tensor(weights, f"{matrix}_scales", BYTES, (experts, columns, groups))
        stored = (name, f"{matrix}_scales")
        read = partial(decode, weights, *stored)
        found[matrix] = QuantisedMatrix((experts, 32 * groups, columns), "MXFP4", stored, read)
    return found


def decode(weights: Weights, blocks: str, scales: str) -> Tensor:
    """number x 2^(exponent - 127), expert in out; the lower half of a byte comes first."""
    packed, exponents = weights[blocks], weights[scales]
    powers = torch.exp2(exponents.double() - BIAS).float()
    powers[exponents == 255] = torch.nan  # as the format says
    doubled = torch.tensor(DOUBLED, dtype=torch.float32)
    doubled[8] = -0.0
    made = torch.stack([doubled[(packed & 15).int()], doubled[(packed >> 4).int()]], -1).flatten(-2)
    return made.mul_(powers[..., None]).flatten(-2).mT.contiguous()


QUANTISATION = Quantisation("MXFP4", ("mxfp4",), find, mark=r"_blocks$", traces=r"_(blocks|scales)$")
