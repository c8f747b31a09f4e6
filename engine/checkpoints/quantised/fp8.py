"""8-bit floating-point numbers with a scale for a block, a row or all of a matrix, as DeepSeek-V3 stores them (2024,
section 3.3; Micikevicius et al. 2022)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from torch import Tensor

from engine.checkpoints.quantisation import (
    SCALES,
    Options,
    Quantisation,
    QuantisedMatrix,
    check_axes,
    check_tensor,
    scale_blocks,
)
from engine.checkpoints.weights import Weights

FLOATS = ("float8_e4m3fn", "float8_e5m2")
USUAL = (128, 128)
TRACES = r"\.weight_(packed|zero_point|scale|scale_inv|shape|global_scale)$"  # of compressed-tensors too


def find(weights: Weights, options: Options) -> Mapping[str, QuantisedMatrix]:
    block = read_block(options, "weight_block_size")
    found = {}
    for name in (one for one, dtype in weights.dtypes.items() if dtype in FLOATS and one.endswith(".weight")):
        rows, columns = shape = check_axes(weights, name, FLOATS, 2)
        plain = f"{name}_scale"
        scale = plain if plain in weights.shapes else f"{name}_scale_inv"
        blocks = (-(-rows // block[0]), -(-columns // block[1]))
        check_tensor(weights, scale, SCALES, blocks, (rows, 1), (1,), (), (1, 1))
        found[name] = QuantisedMatrix(shape, "float8", (name, scale), partial(decode, weights, name, scale, block))
    return found


def read_block(options: Options, name: str) -> tuple[int, int]:
    """Rows and columns that share a scale. Raises ValueError for anything but two whole numbers above 0."""
    block = options.table.get(name) or USUAL
    if not isinstance(block, list | tuple) or len(block) != 2 or not all(type(one) is int and one > 0 for one in block):
        raise options.refusal(name, "two whole numbers above 0")
    return block[0], block[1]


def decode(weights: Weights, name: str, scale: str, block: tuple[int, int]) -> Tensor:
    """number x scale, out in."""
    scales = weights[scale]
    if scales.numel() == 1 or scales.shape == (weights.shapes[name][0], 1):
        return weights[name].float() * scales.float()
    return scale_blocks(weights[name], scales, block)


QUANTISATION = Quantisation("FP8", ("fp8", "fbgemm_fp8"), find, mark=r"\.weight_scale_inv$", traces=TRACES)
